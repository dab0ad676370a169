# Every target sets itself up: Python 3.11+ and make are all it takes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 3
HOSTS ?= .hosts

.PHONY: help setup demo test suite test-hosts compiled coverage check types lint bench bench-retrieval bench-loops bench-statements bench-staleness bench-decisions bench-graph bench-rules bench-hook bench-postgres bench-vectors bench-moving bench-files clean

help:  ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/'

setup: $(READY)  ## Make .venv with every extra

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Mnemarch needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Mnemarch and its tools into $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,mcp,semantic,server]'
	@$(BIN)/python -m compileall -q src/mnemarch
	@touch $@

demo: $(READY)  ## Five agents, five processes, one memory
	@$(BIN)/mnemarch demo

test: $(READY)  ## Every check and every test
	@$(MAKE) --no-print-directory -j 2 lint compiled
	@$(MAKE) --no-print-directory -j 2 types suite  # mypy takes a minute of one core: the tests use the others.

suite: $(READY)
	$(BIN)/pytest -n $(WORKERS)

compiled: $(READY)
	@PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --collect-only -q > /dev/null 2>&1 || true  # Once, not by each worker.

test-hosts: $(READY)  ## Real coding agents from npm, offline, in a throw-away folder (node, 1.4 GB)
	@mkdir -p $(HOSTS) && cp tests/hosts/package.json $(HOSTS)
	npm install --prefix $(HOSTS) --no-audit --no-fund --ignore-scripts
	cd $(HOSTS)/node_modules/@anthropic-ai/claude-code && node install.cjs
	cd $(HOSTS)/node_modules/opencode-ai && node postinstall.mjs
	MNEMARCH_HOSTS=$(HOSTS) $(BIN)/pytest tests/hosts

coverage: $(READY)  ## Every test, and the lines that none of them runs
	$(BIN)/coverage erase
	COVERAGE_PROCESS_START=pyproject.toml $(BIN)/coverage run -m pytest -n $(WORKERS)
	@$(BIN)/coverage combine --quiet && $(BIN)/coverage report

check: types lint  ## Lint, types, layers, dead code

types: $(READY)
	$(BIN)/mypy

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/vulture

bench: $(READY)  ## Speed and memory, as ratios measured in one run
	$(BIN)/python -m bench.spine

bench-retrieval: $(READY)  ## How well recall finds, on the sets of MNEMARCH_BENCH_DATA (../shared/data)
	@$(BIN)/python -c 'import matplotlib' 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]' || echo "Without a picture, then."
	$(BIN)/python -m bench.retrieval

bench-loops: $(READY)  ## How well errors and approaches are told apart
	$(BIN)/python -m bench.loops.fingerprints
	$(BIN)/python -m bench.loops.approaches
	$(BIN)/python -m bench.loops.trajectories

bench-statements: $(READY)  ## How well opposed statements, and tests that oppose a claim, are told
	$(BIN)/python -m bench.statements
	$(BIN)/python -m bench.claims

bench-staleness: $(READY)  ## What checking memory against the code costs
	$(BIN)/python -m bench.staleness.gate
	$(BIN)/python -m bench.staleness.symbols
	$(BIN)/python -m bench.staleness.history

bench-decisions: $(READY)  ## Decisions at 1,100,000 rows against 1,000
	$(BIN)/python -m bench.decisions

bench-hook: $(READY)  ## What a hook costs, event by event and host by host
	$(BIN)/python -m bench.hook

bench-graph: $(READY)  ## The session graph: speed, memory, and Korean paraphrases
	$(BIN)/python -m bench.graph
	$(BIN)/python -m bench.graph_likeness

bench-postgres: $(READY)  ## The PostgreSQL store against bare inserts, and against the embedded one
	$(BIN)/python -m bench.postgres

bench-vectors: $(READY)  ## Nearest vectors in a file, in PostgreSQL and in Qdrant's engine
	$(BIN)/python -m bench.vectors

bench-moving: $(READY)  ## A copy against bare inserts, an import against remember_many
	$(BIN)/python -m bench.moving

bench-files: $(READY)  ## A memory in files against bare appends, and how fast a pull is read
	$(BIN)/python -m bench.files

bench-rules: $(READY)  ## What patches teach: yield, precision, transfer, categories
	$(BIN)/python -m bench.learning.rules
	$(BIN)/python -m bench.learning.categories

clean:  ## Remove what was generated
	rm -rf $(VENV) $(HOSTS) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* bench/out
