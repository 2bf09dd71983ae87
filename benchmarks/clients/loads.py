"""One measurement in a process of its own: `python -m benchmarks.clients.loads DRIVER FUNCTION JOB` prints numbers."""

from __future__ import annotations

import importlib
import json
import sys

from benchmarks.clients.jobs import Job

if __name__ == "__main__":
    driver, function, job = sys.argv[1:]
    module = importlib.import_module(f"benchmarks.clients.drivers.{driver}")
    print(json.dumps(getattr(module, function)(Job(**json.loads(job)))))
