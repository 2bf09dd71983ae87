"""Clients of ksqlDB that others wrote: what each of their calls makes of our answers.

Three of them take a chunk of an answer for a row, and two do not read an answer whose status line has no words.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.support import peers

TIMEOUT_S = 180
INFO = ["version", "kafkaClusterId", "ksqlServiceId", "serverStatus"]
ROWS = [{"ID": 1, "WORD": "tree"}, {"ID": 2, "WORD": "wind"}, {"ID": 3, "WORD": "rain"}]


def node(client: str, url: str) -> dict[str, Any]:
    """What `tests/compat/node/ksqldb.mjs` says of a client."""
    done = subprocess.run(
        [peers.node(), "--no-warnings", peers.node_programs() / "ksqldb.mjs", client, url],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_ksqldb_js(url: str) -> None:
    found = node("ksqldb-js", url)
    assert found.pop("unsettable").startswith("ksql.service.id is not a property that can be set")
    assert found.pop("badStatement").startswith("line 1:6: Unexpected 'NOTHING'")
    assert found.pop("badQuery").startswith("NOTHING does not exist")
    assert found == {
        "created": "SUCCESS",
        "status": "SUCCESS",
        "acknowledged": [{"status": "ok", "seq": number} for number in range(3)],
        "refusedRow": "error",
        "pushed": [list(row.values()) for row in ROWS],
        "terminated": True,
        "pulled": [list(row.values()) for row in ROWS[1:]],
        "settable": True,
        "info": INFO,
        "healthy": True,
        "servers": [True],
    }


def test_ksqldb_client(url: str) -> None:
    assert node("ksqldb-client", url) == {
        "created": "SUCCESS",
        "badStatement": 40001,
        "inserted": [{"status": "ok", "seq": 0}] * 3,
        "refusedRow": "error",
        "streams": ["STREAM"],
        "topics": [[1]],
        "tables": [],
        "queries": [],
        "fields": [["ID", "INTEGER"], ["WORD", "STRING"]],
        "pushed": ROWS,
        "closed": 200,
        "streamed": 200,
        "closedAgain": 40000,
        "pulled": [ROWS[1]],
        "badQuery": 40001,
    }


def test_ksqldb_rx_client(url: str) -> None:
    assert node("ksqldb-rx-client", url) == {
        "streams": ["rx_words"],
        "tables": "tables",
        "extended": True,
        "healthy": True,
        "info": INFO,
        "badStatement": 40001,
        "pushed": ROWS,
    }
