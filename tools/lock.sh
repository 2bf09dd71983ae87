#!/bin/sh
# Write requirements.lock: exact versions with hashes, for every platform and Python 3.11+, without naming an index.
set -eu
venv=${1:?usage: lock.sh VENV}
"$venv/bin/python" -m pip install -q uv
"$venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
    --no-emit-index-url --no-annotate --no-header --extra dev pyproject.toml -o requirements.lock
