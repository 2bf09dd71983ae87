"""What one client writes, with any codec, every other client reads: same keys, values, headers, times, offsets."""

from __future__ import annotations

import pytest

from tests.compat.admin import create_topic
from tests.compat.batches import batches_of, first_segment
from tests.compat.clients.base import Record
from tests.compat.clients.registry import CLIENTS, READERS
from tests.compat.samples import sample_records
from tests.support.brokers import Broker

# One worker writes the topics once; the pairs then only read.
pytestmark = pytest.mark.xdist_group("matrix")


class Matrix:
    """Topics by writer and codec, written when first asked for."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._written: dict[str, dict[str, list[Record]] | str] = {}

    def topic(self, writer: str, codec: str) -> str:
        return f"matrix.{writer}.{codec}"

    def written_by(self, writer: str) -> dict[str, list[Record]]:
        """By codec, the records which every reader must see; a failed writer fails for each of its readers."""
        if writer not in self._written:
            # Stands when the next line raises: the writer's first test shows how, the others say that it did.
            self._written[writer] = f"{writer} could not write, see its first failure"
            self._written[writer] = self._write(writer)
        written = self._written[writer]
        assert not isinstance(written, str), written
        return written

    def _write(self, writer: str) -> dict[str, list[Record]]:
        client = CLIENTS[writer]
        result = {}
        for codec in client.write_codecs():
            wanted = client.as_written(sample_records())
            topic = self.topic(writer, codec)
            create_topic(self.bootstrap, topic)
            client.write(self.bootstrap, topic, wanted, codec=codec)
            # Where the tool chose the time stamp, one reader's answer is what all the others must say too.
            read = CLIENTS["confluent-kafka"].read(self.bootstrap, topic, count=len(wanted))
            result[codec] = [
                one._replace(offset=index, timestamp=seen.timestamp if one.timestamp is None else one.timestamp)
                for index, (one, seen) in enumerate(zip(wanted, read, strict=True))
            ]
        return result


@pytest.fixture(scope="module")
def matrix(broker: Broker) -> Matrix:
    return Matrix(broker.bootstrap)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("writer", list(CLIENTS))
def test_pair(matrix: Matrix, writer: str, reader: str) -> None:
    client = CLIENTS[reader]
    xerial = CLIENTS[writer].writes_xerial_snappy
    wanted = {
        matrix.topic(writer, codec): records
        for codec, records in matrix.written_by(writer).items()
        if codec in client.read_codecs() and (codec != "snappy" or client.reads_xerial_snappy or not xerial)
    }
    read = client.read_all(matrix.bootstrap, {topic: len(records) for topic, records in wanted.items()})
    for topic, records in wanted.items():
        assert read[topic] == [client.as_read(one) for one in records], f"{topic} as {reader} reads it"


@pytest.mark.parametrize("writer", list(CLIENTS))
def test_the_codec_of_the_producer_is_kept(matrix: Matrix, broker: Broker, writer: str) -> None:
    for codec in matrix.written_by(writer):
        batches = batches_of(first_segment(broker.partition_dir(matrix.topic(writer, codec))))
        # librdkafka leaves a batch alone which compression would not shorten; none of these is such.
        assert codec in {batch.codec for batch in batches}
        assert {batch.codec for batch in batches} <= {codec, "none"}
