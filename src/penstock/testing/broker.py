"""A broker for as long as a test needs one.

It has a thread and a loop of its own, so blocking and asyncio tests use it alike, and a test that blocks its own loop
does not stop it. Its data lies in a temporary folder that goes with it. The settings are those of the development
profile; neither a file nor the environment of the developer changes them.
"""

from __future__ import annotations

import asyncio
import atexit
import random
import shutil
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from penstock.base.config.broker import BrokerConfig
from penstock.base.config.broker_keys import KEYS
from penstock.base.config.declaration import ConfigErrors
from penstock.base.config.loading import load_broker_config
from penstock.base.config.resolving import known_key
from penstock.base.config.retired import RETIRED
from penstock.base.config.text import closest
from penstock.base.system import new_event_loop
from penstock.server.broker import Broker, BrokerError
from penstock.testing.faults import Faults
from penstock.testing.logs import ROUTER, BrokerLog
from penstock.testing.requests import create_topic
from penstock.testing.rules import Interceptor
from penstock.testing.world import Disk, EphemeralWorld

HOST: Final = "127.0.0.1"
IO_THREADS: Final = 2
WAIT_SECONDS: Final = 30.0
"""For the broker's thread to do what it was asked for; it takes milliseconds unless the machine is stuck."""

_OWN_SETTINGS: Final = frozenset({"advertised.listeners", "listeners", "log.dir", "log.dirs"})

T = TypeVar("T")


class EphemeralBrokerError(Exception):
    """The broker cannot do what the test asks for; the message says why and what to do."""


class EphemeralBroker:
    """`with EphemeralBroker() as kafka: ...`, or `async with`, or `start()` and `stop()`.

    `config` holds broker settings under Kafka's names, such as `{"num.partitions": 3}`.
    """

    def __init__(self, config: Mapping[str, object] | None = None, *, port: int = 0) -> None:
        self._overrides = {key: setting_text(value) for key, value in (config or {}).items()}
        if chosen := sorted(_OWN_SETTINGS & self._overrides.keys()):
            raise EphemeralBrokerError(
                f"an ephemeral broker chooses {' and '.join(chosen)} by itself; leave that out, or run `penstock serve`"
            )
        for key in self._overrides:
            _check_known(key)
        self._port = port
        self._directory: str | None = None
        self._thread: _BrokerThread | None = None
        self._log = BrokerLog()
        self._interceptor = Interceptor()
        self._disk = Disk()
        self.faults = Faults(self._running, self._interceptor, self._disk)

    # -- Start and stop --------------------------------------------------------------------------------------------

    def start(self) -> Self:
        if self._thread is not None:
            raise EphemeralBrokerError("the broker runs already; call stop() or restart() first")
        if self._directory is None:
            self._directory = tempfile.mkdtemp(prefix="penstock-test-")
            # For whoever forgets to stop it, as one does in a notebook.
            atexit.register(self._remove_directory)
        try:
            thread = _BrokerThread(self._config(), self._log, self._interceptor, self._disk)
            thread.start()
        except BaseException as error:
            self._remove_directory()
            if isinstance(error, BrokerError | ConfigErrors):
                raise EphemeralBrokerError(f"the broker does not start: {error}") from None
            raise
        self._thread = thread
        self._port = thread.broker.endpoints[0].port
        return self

    def _config(self) -> BrokerConfig:
        flags = {
            "listeners": f"PLAINTEXT://{HOST}:{self._port}",
            "log.dirs": str(self._directory),
            **self._overrides,
        }
        return load_broker_config(environ={}, flags=flags, profile="development")

    def stop(self) -> None:
        """Stop the broker and remove its data; no error when it is stopped already."""
        self._stop_thread()
        self._remove_directory()
        self._port = 0

    def restart(self) -> None:
        """Stop the broker and start it again on the same port with the same data. Faults are undone by that."""
        self._stop_thread()
        self.start()

    def _stop_thread(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()

    def _remove_directory(self) -> None:
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            atexit.unregister(self._remove_directory)
            self._directory = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    # -- What tests use --------------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """`127.0.0.1:54321`; the same after a restart."""
        return f"{HOST}:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    @property
    def host(self) -> str:
        return HOST

    @property
    def port(self) -> int:
        self._running()
        return self._port

    @property
    def data_directory(self) -> str:
        """Where the logs lie, until the broker is stopped."""
        self._running()
        assert self._directory is not None
        return self._directory

    def log_text(self, since: int = 0) -> str:
        """What the broker has logged, also before a restart and after the stop; see `log_line_count` for `since`."""
        return self._log.text(since)

    @property
    def log_line_count(self) -> int:
        return self._log.count

    def create_topic(self, name: str, partitions: int = 1, **config: object) -> str:
        """Make a topic, and give its name. Settings are Kafka's with underscores: `cleanup_policy="compact"`."""
        settings = {key.replace("_", "."): setting_text(value) for key, value in config.items()}
        failure = create_topic(HOST, self.port, name, partitions, settings)
        if failure is not None:
            raise EphemeralBrokerError(f"the topic {name!r} was not made: {failure}")
        return name

    def _running(self) -> _BrokerThread:
        if self._thread is None:
            raise EphemeralBrokerError("the broker does not run; use it inside `with`, or call start() first")
        return self._thread

    def __repr__(self) -> str:
        return f"<EphemeralBroker {f'on {self.bootstrap_servers}' if self._thread is not None else 'stopped'}>"


class _BrokerThread:
    """One run of a broker: a thread, its loop, and the parts that faults need."""

    def __init__(self, config: BrokerConfig, log: BrokerLog, interceptor: Interceptor, disk: Disk) -> None:
        self._config = config
        self._log = log
        self._interceptor = interceptor
        self._disk = disk
        self._ready: Future[tuple[asyncio.AbstractEventLoop, Broker, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._run, name="penstock-broker", daemon=True)

    def start(self) -> None:
        ROUTER.install()
        self._thread.start()
        try:
            self._ready.result(WAIT_SECONDS)
        except BaseException:
            self._thread.join(WAIT_SECONDS)
            ROUTER.remove()
            raise

    def stop(self) -> None:
        loop, _, stopping = self._ready.result()
        loop.call_soon_threadsafe(stopping.set)
        self._thread.join(WAIT_SECONDS)
        if self._thread.is_alive():
            raise EphemeralBrokerError(f"the broker did not stop within {WAIT_SECONDS:.0f} s; see log_text() for why")
        ROUTER.remove()

    @property
    def broker(self) -> Broker:
        return self._ready.result()[1]

    def run(self, work: Callable[[], T]) -> T:
        async def call() -> T:
            return work()

        return self.run_async(call)

    def run_async(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return asyncio.run_coroutine_threadsafe(work(), self._ready.result()[0]).result(WAIT_SECONDS)

    def _run(self) -> None:
        self._log.claim_thread()
        loop = new_event_loop()
        try:
            loop.run_until_complete(self._serve(loop))
        except Exception as error:  # noqa: BLE001 - it reaches whoever waits for the start
            if not self._ready.done():
                self._ready.set_exception(error)
        finally:
            loop.close()

    async def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        world = EphemeralWorld(loop, threads=IO_THREADS, disk=self._disk, log=self._log)
        broker = Broker(self._config, world, random.Random(), wrap_dispatch=self._interceptor.wrap)
        stopping = asyncio.Event()
        try:
            await broker.start()
            self._ready.set_result((loop, broker, stopping))
            await stopping.wait()
        finally:
            # Nobody shall wait for an answer that a fault holds back.
            self._disk.is_full = False
            self._interceptor.clear()
            await broker.stop()
            await world.close()


def _check_known(key: str) -> None:
    """A broker starts with keys that nobody knows, since a plugin might want them; in a test they are misspelt."""
    if known_key(key) is None and key not in RETIRED:
        meant = closest(key.replace("_", "."), KEYS)
        remedy = f"did you mean {meant!r}?" if meant else "docs/configuration.md lists them"
        raise EphemeralBrokerError(f"{key!r} is not a setting of brokers; {remedy}")


def setting_text(value: object) -> str:
    """As Kafka writes a setting."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(setting_text, value))
    return str(value)
