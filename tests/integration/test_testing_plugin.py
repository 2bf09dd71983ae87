"""The fixtures inside pytest sessions of their own, as a user's project runs them."""

from __future__ import annotations

import re
from importlib.metadata import entry_points

import pytest

from tests.support.brokers import ROOT

pytest_plugins = ["pytester"]

MODULE = "penstock.testing.plugin"
IS_REGISTERED = any(point.value == MODULE for point in entry_points(group="pytest11"))


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makeini("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    plugin = () if IS_REGISTERED else ("-p", MODULE)
    return project.runpytest_subprocess(*plugin, "-p", "no:cacheprovider", *arguments, timeout=120)


def test_every_client_in_sync_and_async_tests(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
        from confluent_kafka import Consumer, Producer

        def test_confluent_kafka(kafka, kafka_topic):
            producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
            producer.produce(kafka_topic, b"hello")
            assert producer.flush(10) == 0
            consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g",
                                 "auto.offset.reset": "earliest"})
            consumer.subscribe([kafka_topic])
            assert consumer.poll(20).value() == b"hello"
            consumer.close()

        async def test_aiokafka(kafka, kafka_topic):
            async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
                await producer.send_and_wait(kafka_topic, b"hello")
            async with AIOKafkaConsumer(kafka_topic, bootstrap_servers=kafka.bootstrap_servers,
                                        auto_offset_reset="earliest") as consumer:
                assert (await consumer.getone()).value == b"hello"

        def test_kafka_python(kafka, kafka_topic):
            from kafka import KafkaConsumer, KafkaProducer
            producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
            assert producer.send(kafka_topic, b"hello").get(10).offset == 0
            producer.close()
            consumer = KafkaConsumer(kafka_topic, bootstrap_servers=kafka.bootstrap_servers,
                                     auto_offset_reset="earliest", consumer_timeout_ms=10_000)
            assert next(consumer).value == b"hello"
            consumer.close()
        """
    )
    run(project).assert_outcomes(passed=3)


SCOPES = """
    import pytest

    seen = []

    @pytest.mark.parametrize("number", range(3))
    def test_kafka(kafka, number):
        seen.append(kafka.port)
        kafka.create_topic("same-name" if number == 0 or not shared() else f"other-{number}")

    def test_count():
        assert len(set(seen)) == (1 if shared() else 3)

    def test_session(kafka_session, kafka_topic, kafka_faults):
        assert kafka_topic in kafka_session.log_text()
        seen.append(kafka_session.port)

    def test_session_again(kafka_session):
        assert kafka_session.port == seen[-1]
"""


def test_a_broker_for_each_test_unless_the_scope_says_otherwise(project: pytest.Pytester) -> None:
    project.makepyfile(SCOPES + "\n    def shared(): return False\n")
    run(project).assert_outcomes(passed=6)


def test_the_option_makes_tests_share_one(project: pytest.Pytester) -> None:
    project.makepyfile(SCOPES + "\n    def shared(): return True\n")
    run(project, "--kafka-scope=session").assert_outcomes(passed=6)


def test_the_ini_file_makes_tests_share_one_and_a_wrong_word_is_named(project: pytest.Pytester) -> None:
    project.makepyfile(SCOPES + "\n    def shared(): return True\n")
    project.makeini("[pytest]\nkafka_scope = module\n")
    run(project).assert_outcomes(passed=6)
    project.makeini("[pytest]\nkafka_scope = weekly\n")
    result = run(project)
    assert result.ret != 0
    text = result.stdout.str() + result.stderr.str()
    assert "kafka_scope is 'weekly' in the ini file; write one of function, class, module" in text


def test_under_xdist_each_worker_has_its_own_broker(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import os, pytest

        @pytest.mark.parametrize("number", range(8))
        def test_shared(kafka_session, kafka_topic_factory, number):
            name = kafka_topic_factory(f"topic-{number}", partitions=2)
            worker = os.environ["PYTEST_XDIST_WORKER"]
            assert "created topic topic-%d " % number in kafka_session.log_text()
            with open(f"{os.path.dirname(__file__)}/{worker}-{kafka_session.port}", "a"):
                pass

        def test_failing(kafka):
            kafka.create_topic("seen-through-xdist")
            assert False
        """
    )
    result = run(project, "-n", "2")
    result.assert_outcomes(passed=8, failed=1)
    ports = [path.name for path in project.path.glob("gw*-*")]
    assert sorted({name.split("-")[0] for name in ports}) == ["gw0", "gw1"]
    assert len(ports) == 2
    result.stdout.fnmatch_lines(["*Log of the broker 'kafka'*", "*created topic seen-through-xdist*"])


def test_a_failing_test_shows_the_log_of_its_time(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from penstock.testing import EphemeralBroker
        import pytest

        def test_passing(kafka_session):
            kafka_session.create_topic("of-an-earlier-test")

        def test_failing(kafka_session):
            kafka_session.create_topic("of-the-failing-test")
            assert False

        @pytest.fixture
        def mine():
            with EphemeralBroker() as broker:
                yield broker

        def test_with_a_fixture_of_its_own(mine):
            mine.create_topic("of-my-own")
            assert False
        """
    )
    result = run(project)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        ["*Log of the broker 'kafka_session'*", "*of-the-failing-test*", "*Log of the broker 'mine'*", "*of-my-own*"]
    )
    result.stdout.no_fnmatch_line("*of-an-earlier-test*")


def test_faults_are_undone_at_the_end_of_the_test(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        from confluent_kafka import Producer

        def send(kafka, topic):
            producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "retries": 0, "log_level": 0})
            errors = []
            producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
            assert producer.flush(10) == 0
            return errors[0]

        def test_with_faults(kafka_session, kafka_topic, kafka_faults):
            kafka_faults.fail("Produce", "INVALID_REQUEST", times=None)
            kafka_faults.fill_disk()
            assert send(kafka_session, kafka_topic) is not None

        def test_without(kafka_session, kafka_topic):
            assert send(kafka_session, kafka_topic) is None

        def test_restarted(kafka, kafka_topic, kafka_faults):
            kafka.restart()
            kafka_faults.fail("Produce", "INVALID_REQUEST")
            assert send(kafka, kafka_topic) is not None

        def test_stopped(kafka, kafka_faults):
            kafka.stop()
        """
    )
    run(project).assert_outcomes(passed=4)


def test_settings_by_overriding_a_fixture(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import os, pytest

        @pytest.fixture(scope="session")
        def kafka_config():
            return {"num.partitions": 3, "auto.create.topics.enable": False}

        def test_it(kafka, kafka_topic_factory):
            name = kafka_topic_factory(partitions=4, cleanup_policy="compact")
            assert len([each for each in os.listdir(kafka.data_directory) if each.startswith(name)]) == 4
        """
    )
    run(project).assert_outcomes(passed=1)


def test_the_page_can_be_copied_from(project: pytest.Pytester) -> None:
    """The complete tests of docs/testing.md, and the settings beside them, as they stand."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "testing.md").read_text(), re.DOTALL)
    whole = [block for block in blocks if "import" in block and "def test_" in block]
    (settings,) = (block for block in blocks if "def kafka_config" in block)
    project.makeconftest(settings)
    project.makepyfile(**{f"test_block_{number}": block for number, block in enumerate(whole)})
    run(project).assert_outcomes(passed=3)
