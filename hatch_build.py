"""The build hook that compiles the record kernel, if this machine can.

The modules of the kernel, `src/penstock/records/_*.pyx`, become C by Cython and extension modules by the compiler that
built Python. An editable install gets the modules beside their sources, a wheel gets them inside and is then tagged for
its platform. The kernel is an option, and a whole: without Cython, a compiler or Python's headers one line says so, and
the pure Python kernel, which gives the same results, is used. `PENSTOCK_NO_KERNEL=1` asks for that.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "penstock.records"
FOLDER = Path("src/penstock/records")
MODULES = ("_kernel", "_partitioning", "_writing", "_sending", "_consuming")
COMPILE_TIMEOUT_S = 300
FALLBACK_COMPILERS = ("cc", "gcc", "clang")


class KernelUnavailableError(Exception):
    """Why this machine cannot compile the kernel."""


class CustomBuildHook(BuildHookInterface[Any]):
    _work_dir: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        if version == "editable":
            # A module left from an earlier build may not fit the source as it is now.
            for module in MODULES:
                (root / FOLDER / extension_name(module)).unlink(missing_ok=True)
        if os.environ.get("PENSTOCK_NO_KERNEL", "") not in ("", "0"):
            return
        self._work_dir = tempfile.mkdtemp(prefix="penstock-kernel-")
        try:
            extensions = [compile_module(root, module, Path(self._work_dir)) for module in MODULES]
        except KernelUnavailableError as reason:
            self.app.display_warning(f"The record kernel is not compiled ({reason}); the pure Python one is used.")
            self._remove_work_dir()
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for extension in extensions:
            if version == "editable":
                shutil.copyfile(extension, root / FOLDER / extension.name)
            else:
                build_data["force_include"][str(extension)] = f"penstock/records/{extension.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._remove_work_dir()

    def _remove_work_dir(self) -> None:
        if self._work_dir is not None:
            shutil.rmtree(self._work_dir, ignore_errors=True)


def extension_name(module: str) -> str:
    return module + (sysconfig.get_config_var("EXT_SUFFIX") or ".so")


def compile_module(root: Path, module: str, work_dir: Path) -> Path:
    """Compile a module into `work_dir`; the path of the extension module, or `KernelUnavailableError`."""
    if importlib.util.find_spec("Cython") is None:
        raise KernelUnavailableError("Cython is not installed")
    linker = find_linker()
    includes = find_includes()
    c_file = work_dir / f"{module}.c"
    extension = work_dir / extension_name(module)
    cython = [sys.executable, "-m", "cython", "-3", "-I", str(root / "src"), "--module-name", f"{PACKAGE}.{module}"]
    run([*cython, "-o", str(c_file), str(root / FOLDER / f"{module}.pyx")], "Cython")
    flags = ["-O2", "-g0", "-DNDEBUG", *shlex.split(sysconfig.get_config_var("CCSHARED") or "-fPIC")]
    run([*linker, *flags, *includes, str(c_file), "-o", str(extension)], "the C compiler")
    return extension


def find_linker() -> list[str]:
    """The command that makes a shared object in one step: Python's own, with a compiler that is really there."""
    command = shlex.split(sysconfig.get_config_var("LDSHARED") or "")
    if not command:
        raise KernelUnavailableError("this platform's way to link extension modules is not known")
    chosen = shlex.split(os.environ.get("CC", ""))
    candidates = [chosen] if chosen else [command[:1], *([name] for name in FALLBACK_COMPILERS)]
    for candidate in candidates:
        if shutil.which(candidate[0]):
            return [*candidate, *command[1:]]
    raise KernelUnavailableError("no C compiler was found")


def find_includes() -> list[str]:
    paths = sysconfig.get_paths()
    directories = dict.fromkeys((paths["include"], paths["platinclude"]))
    if not any((Path(directory) / "Python.h").is_file() for directory in directories):
        raise KernelUnavailableError("Python's C headers are not installed")
    return [f"-I{directory}" for directory in directories]


def run(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KernelUnavailableError(f"{what} did not run: {error}") from error
    if done.returncode != 0:
        last_lines = " / ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise KernelUnavailableError(f"{what} failed: {last_lines}")
