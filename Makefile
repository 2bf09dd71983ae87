# Every target makes the environment it needs. Start with `make up` or `make test`.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PYTEST := $(BIN)/pytest
# `make up ARGS="--port 9093 --sql-port 8089"` passes options on.
ARGS ?=
UNIT := tests/unit
KERNEL := $(wildcard src/penstock/records/_*.pyx src/penstock/records/_*.pxd)

.DEFAULT_GOAL := help
.PHONY: help env up test check lint types unit bench bench-clients bench-sql docs format lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

env: $(STAMP) ## create .venv with everything a developer needs

$(STAMP): tools/environment.sh pyproject.toml requirements.lock hatch_build.py $(KERNEL)
	@sh tools/environment.sh $(VENV)

up: $(STAMP) ## run the broker and the SQL server on this machine, in the foreground, data in ./data
	@exec $(BIN)/penstock up --data-dir data $(ARGS)

# Hundreds of processes on whatever machine this is: a test that fails is tried once more, and told at the end if it passed.
test: $(STAMP) lint types ## all tests, with every real part they need
	@$(BIN)/python tools/prepare_peers.py
	@$(PYTEST) -n 2 --dist loadscope --reruns 1 -rR tests

check: $(STAMP) lint types unit ## the fast part: lint, types, unit tests

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports

types: $(STAMP)
	@$(BIN)/mypy
	@MYPYPATH=examples $(BIN)/mypy examples/*.py

unit: $(STAMP)
	@$(PYTEST) -n 2 -q $(UNIT)

bench: $(STAMP) ## measure against Apache Kafka on this machine; prints one table of ratios
	@$(BIN)/python -m benchmarks $(ARGS)

bench-clients: $(STAMP) ## measure our clients beside confluent-kafka, aiokafka and kafka-python
	@$(BIN)/python -m benchmarks.clients $(ARGS)

bench-sql: $(STAMP) ## measure streaming SQL beside Kafka Streams
	@$(BIN)/python -m benchmarks.sql $(ARGS)

docs: $(STAMP) ## print the pages of docs/ that come from the code again
	@$(BIN)/python tools/generate_config_docs.py > docs/configuration.md
	@$(BIN)/python tools/generate_config_docs.py metrics > docs/metrics.md
	@$(BIN)/python tools/generate_config_docs.py clients > docs/client-configuration.md
	@$(BIN)/python tools/generate_config_docs.py sql > docs/sql-configuration.md
	@$(BIN)/python tools/generate_client_reference.py > docs/client-reference.md
	@$(BIN)/python tools/generate_function_docs.py > docs/sql-functions.md

format: $(STAMP) ## format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lock: $(STAMP) ## choose the newest versions of all dependencies again
	@sh tools/lock.sh $(VENV)

clean: ## remove what the targets made here (not ./data)
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
