"""Everything here runs on both kernels: the pure one always, the compiled one where it was built."""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType

import pytest

from penstock.records import builder, pure_kernel, validation

try:
    from penstock.records import _kernel
except ImportError:
    _kernel = None  # type: ignore[assignment]

with warnings.catch_warnings():
    # kafka-python, one of our measures, loads its schemas in a deprecated way; our own warnings stay errors. The tests
    # import it again, when it is loaded already.
    warnings.simplefilter("ignore", DeprecationWarning)
    importlib.import_module("kafka.record.default_records")

KERNEL_FUNCTIONS = ("walk_records", "decode_records", "encode_records", "find_timestamp", "list_rejected")


def _kernel_modules() -> list[object]:
    skip = pytest.mark.skip(reason="the compiled kernel is not built: install a C compiler, then `pip install -e .`")
    return [
        pytest.param(pure_kernel, id="pure"),
        pytest.param(_kernel, id="compiled", marks=() if _kernel is not None else skip),
    ]


@pytest.fixture(params=_kernel_modules())
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """One kernel, put in the place of the chosen one in every module that uses it."""
    module = request.param
    assert isinstance(module, ModuleType)
    for user in (builder, validation):
        for name in KERNEL_FUNCTIONS:
            if hasattr(user, name):
                monkeypatch.setattr(user, name, getattr(module, name))
    return module
