# Works with GNU make from 3.81 on (macOS ships that one) and any POSIX sh. `make help` lists what there is.
#   make test PYTHON=python3.12     with that Python instead of the newest
#   make test ARGS='-k lookback'    more words for pytest; for `make bench`, for benchmarks/bench.py

PYTHON =
ARGS =
UPGRADE =
CACHECOST_FUZZ = 10000
CACHECOST_FUZZ_FROM = 0
BIN = .venv/bin

.NOTPARALLEL:
.PHONY: help demo test lint format differential fuzz mutants bench reports evidence lock clean clients docs pictures prices

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

demo: ## install, then show the bill of a demo session and a comparison of designs
	@sh .ci/setup demo $(PYTHON)
	@$(BIN)/cachecost demo

test: ## install, then run the tests
	@sh .ci/setup test $(PYTHON)
	@$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

lint: ## check style, format and types, of the page's modules too; print the size of the package
	@sh .ci/setup test $(PYTHON)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/python -m mypy
	@$(BIN)/python -m tools.house
	@sh .ci/web

format: ## auto-fix style and format
	@sh .ci/setup test $(PYTHON)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clients: ## install pinned real clients and run them against the simulated API
	@sh .ci/setup test $(PYTHON)
	@sh .ci/clients
	@$(BIN)/python -m pytest -m clients tests/clients $(ARGS)

differential: ## the engine against the naive model of the rulebook, 100,000 random calls (minutes)
	@sh .ci/setup test $(PYTHON)
	@$(BIN)/python -m pytest -m long tests/test_differential.py $(ARGS)

fuzz: ## 10,000 damaged files of every format under every command (minutes)
	@sh .ci/setup test $(PYTHON)
	@CACHECOST_FUZZ=$(CACHECOST_FUZZ) CACHECOST_FUZZ_FROM=$(CACHECOST_FUZZ_FROM) $(BIN)/python -m pytest -n 2 -m "" tests/hostile/test_fuzz.py $(ARGS)

mutants: ## small faults put into caches, ledger, account and tokens: how many the tests find (minutes)
	@sh .ci/setup test $(PYTHON)
	@$(BIN)/python -c 'import cosmic_ray' 2>/dev/null || \
		$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input --only-binary :all: cosmic-ray==8.7.0
	@$(BIN)/python -m tools.mutants $(ARGS)

bench: ## time and memory as ratios, beside the recorded ones, and a chart of them against length (minutes)
	@sh .ci/setup test $(PYTHON)
	@$(BIN)/python benchmarks/bench.py $(ARGS)

reports: ## write reports/ of all bundled scenarios anew
	@sh .ci/setup demo $(PYTHON)
	@for scenario in scenarios/*.yaml; do $(BIN)/cachecost run "$$scenario" || exit; done

evidence: ## predict the recorded traffic anew and write reports/fidelity/ and how often each rule was seen
	@sh .ci/setup test $(PYTHON)
	@$(BIN)/cachecost validate scenarios/recordings/traffic/*/*.jsonl scenarios/recordings/transcripts/*.jsonl --assumptions --out reports/fidelity
	@$(BIN)/python -m tools.rule_sightings scenarios/recordings/traffic/*/*.jsonl scenarios/recordings/transcripts/*.jsonl

docs: ## update all generated pages and the scenario schema, build the documentation into build/site
	@sh .ci/setup test $(PYTHON)
	@$(BIN)/python -m tools.reference
	@$(BIN)/python -m mkdocs build --strict --quiet

pictures: ## draw the pictures of cachecost view anew (needs Chromium: .ci/browser)
	@sh .ci/setup test $(PYTHON)
	@PYTHONPATH=.:tests $(BIN)/python -m tools.pictures

prices: ## write the table of public prices anew from the installed genai-prices
	@sh .ci/setup test $(PYTHON)
	@$(BIN)/python -m tools.refresh_prices

COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --only-binary :all: --generate-hashes \
	--custom-compile-command 'make lock'

lock: ## pin new requirements in requirements*.lock, with hashes (UPGRADE=1: the newest version of all)
	@sh .ci/setup lock $(PYTHON)
	@$(COMPILE) --all-extras --group build $(if $(UPGRADE),--upgrade) --output-file requirements.lock pyproject.toml
	@rm -f requirements-server.lock requirements-build.lock
	@$(COMPILE) --extra server --constraint requirements.lock --output-file requirements-server.lock pyproject.toml
	@$(COMPILE) --group build --constraint requirements.lock --output-file requirements-build.lock

clean: ## remove .venv and all caches
	rm -rf .venv .clients tools/web/node_modules .hypothesis .pytest_cache .mypy_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
