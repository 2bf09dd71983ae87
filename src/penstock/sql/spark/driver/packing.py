"""The Python packages executors need, packed so that a plain Python can run our code anywhere.

The archive goes out by `spark.archives` and is unpacked in every executor's working folder as `penstock-environment`:

    bin/python        runs the executor's own Python (of the same minor version) with the packages below
    site-packages/    Penstock and what it needs, as installed here

Spark runs the same command on the driver for some of its helpers, so the driver's Java works in a folder that has
`penstock-environment/bin/python` too, which runs the Python of this process. The archive is kept, under a name that
says what is in it, and made again when a package changes.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import io
import os
import re
import shlex
import sys
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import penstock
from penstock.sql.errors import EngineError

ENVIRONMENT: Final = "penstock-environment"
ENVIRONMENT_PYTHON: Final = f"{ENVIRONMENT}/bin/python"

_DISTRIBUTIONS: Final = ("msgspec", "cramjam", "crc32c", "uvloop", "pyarrow", "pandas", "numpy", "protobuf", "sqlglot")
_LEFT_OUT: Final = ("pandas/tests/", "pyarrow/tests/", "pyarrow/include/", "numpy/f2py/", "__pycache__/")
_OUR_MODULES: Final = ("penstock", "pyspark_penstock.py")
_GZIP_LEVEL: Final = 1

Entry = tuple[str, Path]
"""A name in the archive, and the file that lies there."""


def package_folder() -> Path:
    """The folder that holds the package penstock."""
    return Path(penstock.__file__).resolve().parent.parent


def pack_environment(folder: Path, executor_python: str) -> Path:
    """The archive, in `folder`; made unless it is there."""
    entries = sorted({*_our_entries(), *_distribution_entries(_with_requirements(_DISTRIBUTIONS))})
    archive = folder / f"{ENVIRONMENT}-{_digest(entries, executor_python)}.tar.gz"
    if archive.exists():
        return archive
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{ENVIRONMENT}-*"):
        old.unlink()
    unfinished = archive.with_suffix(".unfinished")
    with (
        gzip.open(unfinished, "wb", compresslevel=_GZIP_LEVEL) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        _add_script(tar, executor_python)
        for name, path in entries:
            tar.add(path, f"site-packages/{name}", recursive=False)
    unfinished.rename(archive)
    return archive


def link_driver_environment(folder: Path) -> None:
    """Let the environment's Python be this process's Python, seen from `folder`."""
    python = folder / ENVIRONMENT_PYTHON
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)


def _add_script(tar: tarfile.TarFile, executor_python: str) -> None:
    script = (
        "#!/bin/sh\n"
        'packages="$(cd "$(dirname "$0")/.." && pwd)/site-packages"\n'
        'PYTHONPATH="$packages${PYTHONPATH:+:$PYTHONPATH}"; export PYTHONPATH\n'
        f'exec {shlex.quote(executor_python)} "$@"\n'
    ).encode()
    info = tarfile.TarInfo("bin/python")
    info.size = len(script)
    info.mode = 0o755
    tar.addfile(info, io.BytesIO(script))


def _our_entries() -> Iterator[Entry]:
    root = package_folder()
    for name in _OUR_MODULES:
        path = root / name
        found = path.rglob("*") if path.is_dir() else [path]
        for each in found:
            if each.is_file() and not _is_left_out(each.relative_to(root).as_posix()):
                yield each.relative_to(root).as_posix(), each


def _with_requirements(names: Iterable[str]) -> list[str]:
    """The distributions and all that they require here, extras aside; those that are not installed left out."""
    found: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found or not _is_installed(name):
            continue
        found[name] = None
        needed = [each for each in importlib.metadata.requires(name) or () if "extra ==" not in each]
        waiting += [re.split(r"[^A-Za-z0-9._-]", each, maxsplit=1)[0] for each in needed]
    return list(found)


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _distribution_entries(names: Iterable[str]) -> Iterator[Entry]:
    for name in names:
        files = importlib.metadata.files(name)
        if files is None:
            raise EngineError(
                f"The package {name} cannot be packed for the executors: its list of files is missing.",
                hint="Install it with pip, or name a Python that has it (on the executors) with spark.pyspark.python.",
            )
        for each in files:
            path = Path(str(each.locate()))
            if ".." not in each.parts and path.is_file() and not _is_left_out(each.as_posix()):
                yield each.as_posix(), path


def _is_left_out(name: str) -> bool:
    return any(name.startswith(part) or f"/{part}" in f"/{name}" for part in _LEFT_OUT) or name.endswith(".pyi")


def _digest(entries: Iterable[Entry], executor_python: str) -> str:
    hasher = hashlib.sha256(f"{executor_python} {sys.version_info[:2]}".encode())
    for name, path in entries:
        status = os.stat(path)
        hasher.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return hasher.hexdigest()[:16]
