"""A project outside the repository, with only the built wheel of Penstock, tests its code with the fixtures."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support import peers
from tests.support.brokers import ROOT
from tests.support.cache import fetch

SAMPLE = Path(__file__).resolve().parent / "sample_project"
PACKAGES = ("aiokafka", "confluent-kafka", "pytest", "pytest-asyncio", "pytest-xdist")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PLUGIN = "penstock.testing.plugin"
IS_REGISTERED = PLUGIN in PROJECT.get("entry-points", {}).get("pytest11", {}).values()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the wheel, the clients and pytest."""
    root = tmp_path_factory.mktemp("sample")
    # Without the compiled kernel: it is an option, and compiling it is tested elsewhere.
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", root, ROOT],
        env={**os.environ, "PENSTOCK_NO_KERNEL": "1"},
        check=True,
        timeout=180,
    )
    (wheel,) = root.glob("penstock-*.whl")
    subprocess.run([sys.executable, "-m", "venv", root / "venv"], check=True, timeout=120)
    fetch(
        [root / "venv/bin/pip", "install", "-q", wheel, *(f"{name}=={version(name)}" for name in PACKAGES)],
        what="the packages of the sample project (pip)",
        remedy="let this machine reach a Python package index",
    )
    return root / "venv"


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_the_sample_project_passes(environment: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    project = shutil.copytree(SAMPLE, tmp_path / "project")
    assert "5 passed" in run_tests(environment, project, "-k", "not node", *options)


def test_the_sample_project_passes_with_a_node_client(environment: Path, tmp_path: Path) -> None:
    project = shutil.copytree(SAMPLE, tmp_path / "project")
    (project / "node_modules").symlink_to(peers.node_programs() / "node_modules")
    assert "1 passed" in run_tests(environment, project, "-k", "node")


def run_tests(environment: Path, project: Path, *options: str) -> str:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    variables["PATH"] = f"{environment / 'bin'}{os.pathsep}{variables['PATH']}"
    plugin = () if IS_REGISTERED else ("-p", PLUGIN)
    done = subprocess.run(
        [environment / "bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *options],
        cwd=project,
        env=variables,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout
