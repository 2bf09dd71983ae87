"""The build hook that compiles the record kernel, if this machine can.

`src/penstock/records/_kernel.pyx` becomes C by Cython and an extension module by the compiler that built Python. An
editable install gets the module beside its source, a wheel gets it inside and is then tagged for its platform. The
kernel is an option: without Cython, a compiler or Python's headers one line says so, and the pure Python kernel, which
gives the same results, is used. `PENSTOCK_NO_KERNEL=1` asks for that.
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

MODULE = "penstock.records._kernel"
SOURCE = Path("src/penstock/records/_kernel.pyx")
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
        beside_source = root / SOURCE.parent / extension_name()
        if version == "editable":
            # A module left from an earlier build may not fit the source as it is now.
            beside_source.unlink(missing_ok=True)
        if os.environ.get("PENSTOCK_NO_KERNEL", "") not in ("", "0"):
            return
        self._work_dir = tempfile.mkdtemp(prefix="penstock-kernel-")
        try:
            extension = compile_kernel(root / SOURCE, Path(self._work_dir))
        except KernelUnavailableError as reason:
            self.app.display_warning(f"The record kernel is not compiled ({reason}); the pure Python one is used.")
            self._remove_work_dir()
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        if version == "editable":
            shutil.copyfile(extension, beside_source)
        else:
            build_data["force_include"][str(extension)] = f"penstock/records/{extension.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._remove_work_dir()

    def _remove_work_dir(self) -> None:
        if self._work_dir is not None:
            shutil.rmtree(self._work_dir, ignore_errors=True)


def extension_name() -> str:
    return "_kernel" + (sysconfig.get_config_var("EXT_SUFFIX") or ".so")


def compile_kernel(source: Path, work_dir: Path) -> Path:
    """Compile `source` into `work_dir`; the path of the extension module, or `KernelUnavailableError`."""
    if importlib.util.find_spec("Cython") is None:
        raise KernelUnavailableError("Cython is not installed")
    linker = find_linker()
    includes = find_includes()
    c_file = work_dir / "_kernel.c"
    extension = work_dir / extension_name()
    run([sys.executable, "-m", "cython", "-3", "--module-name", MODULE, "-o", str(c_file), str(source)], "Cython")
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
