"""Send records one by one, and wait for each: simple, safe and slow.

`send` gives a `Delivery`; its `result()` waits until the broker has the record and tells where it was written, or
raises why it was not.
"""

from __future__ import annotations

import penstock
from common import arguments


def main() -> None:
    args = arguments(__doc__, topic="produce-sync")
    with penstock.Producer(bootstrap_servers=args.bootstrap_server) as producer:
        for number in range(5):
            delivery = producer.send(args.topic, f"order {number}", key=f"customer {number % 2}")
            written = delivery.result(timeout=30)
            print(f"order {number} is in {written.topic}-{written.partition} at offset {written.offset}")


if __name__ == "__main__":
    main()
