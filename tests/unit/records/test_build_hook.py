"""The build hook: it compiles the kernel where it can, and says in one line why where it cannot."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


class QuietApp:
    """Collects what the hook tells the person who installs."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def display_warning(self, message: str) -> None:
        self.warnings.append(message)


@pytest.fixture(scope="module")
def hatch_build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree with nothing but what the hook needs."""
    package = tmp_path / "src/penstock/records"
    package.mkdir(parents=True)
    for pattern in ("__init__.py", "_*.pyx", "_*.pxd"):
        for source in (ROOT / "src/penstock/records").glob(pattern):
            shutil.copy(source, package)
    shutil.copy(ROOT / "src/penstock/__init__.py", package.parent)
    return tmp_path


def run_hook(hatch_build: ModuleType, root: Path, version: str) -> tuple[QuietApp, dict[str, Any], Any]:
    app = QuietApp()
    hook = hatch_build.CustomBuildHook(str(root), {}, None, None, str(root / "dist"), "wheel", app)
    build_data: dict[str, Any] = {"force_include": {}}
    hook.initialize(version, build_data)
    return app, build_data, hook


def test_without_a_compiler_it_warns_once_and_goes_on(
    hatch_build: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("PENSTOCK_NO_KERNEL", raising=False)
    app, build_data, _ = run_hook(hatch_build, tree, "standard")
    assert len(app.warnings) == 1
    assert "no C compiler was found" in app.warnings[0]
    assert build_data == {"force_include": {}}


def test_without_headers(hatch_build: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "true")
    monkeypatch.setattr(hatch_build.sysconfig, "get_paths", lambda: {"include": "/no", "platinclude": "/no"})
    app, _, _ = run_hook(hatch_build, tree, "standard")
    assert "headers are not installed" in app.warnings[0]


def test_without_cython(hatch_build: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hatch_build.importlib.util, "find_spec", lambda name: None)
    app, _, _ = run_hook(hatch_build, tree, "standard")
    assert "Cython is not installed" in app.warnings[0]


def test_a_failing_compiler_is_only_a_warning_and_no_old_module_stays(
    hatch_build: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hatch_build, "find_includes", list)
    monkeypatch.setenv("CC", "false")
    old = tree / "src/penstock/records" / hatch_build.extension_name("_writing")
    old.write_bytes(b"from an earlier build")
    app, build_data, _ = run_hook(hatch_build, tree, "editable")
    assert "failed" in app.warnings[0]
    assert not old.exists()
    assert "pure_python" not in build_data


def test_it_can_be_switched_off(hatch_build: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_NO_KERNEL", "1")
    app, build_data, _ = run_hook(hatch_build, tree, "standard")
    assert app.warnings == []
    assert build_data == {"force_include": {}}


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler here: install gcc or clang")
def test_it_compiles_a_module_that_works(hatch_build: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_NO_KERNEL", raising=False)
    app, build_data, hook = run_hook(hatch_build, tree, "standard")
    if app.warnings and "headers" in app.warnings[0]:
        pytest.skip(app.warnings[0])
    assert app.warnings == []
    assert build_data["pure_python"] is False
    assert build_data["infer_tag"] is True
    sources = {target: source for source, target in build_data["force_include"].items()}
    names = ("_kernel", "_partitioning", "_writing", "_sending", "_consuming")
    assert set(sources) == {f"penstock/records/{hatch_build.extension_name(name)}" for name in names}
    assert not list(tree.glob("src/penstock/records/*.so"))
    assert not list(tree.glob("src/penstock/records/*.c"))
    source = sources[f"penstock/records/{hatch_build.extension_name('_kernel')}"]
    program = (
        "import importlib.util, sys; "
        "spec = importlib.util.spec_from_file_location('penstock.records._kernel', sys.argv[1]); "
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module); "
        "print(module.walk_records(bytes.fromhex('10000000026b027600'), 0, 9, 1, 5, True))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, source], capture_output=True, text=True, cwd=ROOT / "src", check=False
    )
    assert done.stdout.strip() == "(5, 5, -1)", done.stderr
    hook.finalize("standard", build_data, "")
    assert not Path(source).exists()
