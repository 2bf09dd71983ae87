"""Tests of a project that has only the wheel of Penstock; the page docs/testing.md shows the same."""

from __future__ import annotations

import json
import subprocess
import unittest
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import KafkaException, Producer
from orders import confirm

from penstock.testing import EphemeralBroker


def place(kafka: EphemeralBroker, topic: str, *orders: bytes) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for order in orders:
        producer.produce(topic, order)
    assert producer.flush(20) == 0


async def read(kafka: EphemeralBroker, topic: str, count: int) -> list[bytes | None]:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest")
    async with consumer:
        return [(await consumer.getone()).value for _ in range(count)]


async def test_orders_are_confirmed(kafka, kafka_topic_factory):
    orders, confirmations = kafka_topic_factory(), kafka_topic_factory()
    place(kafka, orders, b"1", b"2")
    confirm(kafka.bootstrap_servers, orders, confirmations, count=2)
    assert await read(kafka, confirmations, 2) == [b"confirmed 1", b"confirmed 2"]


async def test_a_lost_answer_confirms_once(kafka, kafka_topic_factory, kafka_faults):
    orders, confirmations = kafka_topic_factory(), kafka_topic_factory()
    place(kafka, orders, b"1")
    lost = kafka_faults.disconnect_after(api="Produce", handled=True)
    confirm(kafka.bootstrap_servers, orders, confirmations, count=1)
    assert lost.hits == 1
    place(kafka, confirmations, b"the end")
    assert await read(kafka, confirmations, 2) == [b"confirmed 1", b"the end"]


def test_a_refusal_reaches_the_caller(kafka, kafka_topic_factory, kafka_faults):
    orders, confirmations = kafka_topic_factory(), kafka_topic_factory()
    place(kafka, orders, b"1")
    kafka_faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(KafkaException):
        confirm(kafka.bootstrap_servers, orders, confirmations, count=1)


async def test_aiokafka_writes_too(kafka_session, kafka_topic):
    async with AIOKafkaProducer(bootstrap_servers=kafka_session.bootstrap_servers) as producer:
        await producer.send_and_wait(kafka_topic, b"hello")
    assert await read(kafka_session, kafka_topic, 1) == [b"hello"]


class InUnittest(unittest.TestCase):
    def test_a_context_manager(self):
        with EphemeralBroker() as kafka:
            place(kafka, kafka.create_topic("orders"), b"1")


def test_a_node_client_starts_a_broker_for_itself():
    program = Path(__file__).with_name("broker.mjs")
    done = subprocess.run(["node", "--no-warnings", program], capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"read": ["hello from node"], "exit": 0}
