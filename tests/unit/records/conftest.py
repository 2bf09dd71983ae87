"""Everything here runs on both kernels: the pure one always, the compiled one where it was built."""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType, SimpleNamespace

import pytest

from penstock.records import (
    builder,
    pure_consuming,
    pure_kernel,
    pure_partitioning,
    pure_sending,
    pure_writing,
    validation,
)

try:
    from penstock.records import _consuming, _kernel, _partitioning, _sending, _writing
except ImportError:
    _consuming = _kernel = _partitioning = _sending = _writing = None  # type: ignore[assignment]

with warnings.catch_warnings():
    # kafka-python, one of our measures, loads its schemas in a deprecated way; our own warnings stay errors. The tests
    # import it again, when it is loaded already.
    warnings.simplefilter("ignore", DeprecationWarning)
    importlib.import_module("kafka.record.default_records")

KERNEL_FUNCTIONS = ("walk_records", "decode_records", "encode_records", "find_timestamp", "list_rejected")


class ClientKernel(SimpleNamespace):
    """What clients use of one kernel: the public names of its modules."""

    def __init__(self, label: str, *modules: ModuleType) -> None:
        names = {name: item for module in modules for name, item in vars(module).items() if not name.startswith("_")}
        super().__init__(label=label, **names)

    def __repr__(self) -> str:
        return f"<{self.label} kernel>"


PURE = ClientKernel("pure", pure_consuming, pure_partitioning, pure_sending, pure_writing)
COMPILED = _kernel and ClientKernel("compiled", _consuming, _partitioning, _sending, _writing)


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


@pytest.fixture(params=["pure", "compiled"])
def client_kernel(request: pytest.FixtureRequest) -> SimpleNamespace:
    if request.param == "compiled" and COMPILED is None:
        pytest.skip("the compiled kernel is not built: install a C compiler, then `pip install -e .`")
    chosen = PURE if request.param == "pure" else COMPILED
    assert chosen is not None
    return chosen


@pytest.fixture
def both_kernels() -> tuple[SimpleNamespace, SimpleNamespace]:
    if COMPILED is None:
        pytest.skip("the compiled kernel is not built: install a C compiler, then `pip install -e .`")
    return PURE, COMPILED
