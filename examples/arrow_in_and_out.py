"""Arrow tables in and out: whole columns at once, without a Python object per record.

`send_many` takes a table with the column `value`, and `key`, `timestamp`, `headers`, `partition` if wanted;
`consume_arrow` gives record batches. Needs pyarrow: `pip install penstock[arrow]`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

import penstock
from common import arguments

ROWS = 100_000


def main() -> None:
    args = arguments(__doc__, topic="arrow")
    numbers = pa.array(range(ROWS))
    table = pa.table({"key": pc.cast(pc.bit_wise_and(numbers, 7), pa.string()), "value": pc.cast(numbers, pa.string())})
    with penstock.Producer(bootstrap_servers=args.bootstrap_server, batch_size=500_000) as producer:
        batches = producer.send_many(args.topic, table)
        first = batches[0].result(timeout=60).base_offset
        written = sum(batch.result(timeout=60).count for batch in batches)
    print(f"wrote {written} rows in {len(batches)} batches")

    with penstock.Consumer(bootstrap_servers=args.bootstrap_server) as consumer:
        partition = penstock.TopicPartition(args.topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, first)
        rows = total = 0
        while rows < ROWS:
            batch = consumer.consume_arrow(timeout_ms=1_000)
            rows += batch.num_rows
            total += pc.sum(pc.cast(pc.cast(batch["value"], pa.string()), pa.int64())).as_py() or 0
    print(f"read {rows} rows with the columns {batch.schema.names}; the sum is {total}")


if __name__ == "__main__":
    main()
