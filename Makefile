# `make demo` and `make test` prepare what they need, on Debian with Python, git and make; a second run is instant.
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python
READY := Ready. Run `. .venv/bin/activate` to have `icemigrate` on the PATH, then `icemigrate --help`.

.PHONY: help setup java postgres demo demo-pipeline init-infra destroy-infra test rust bench-rust lint test-quick coverage soak random-runs ingest-kills bench docs clean

help: ## What can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

.venv/ready: setup.cfg pyproject.toml scripts/venv.sh
	@bash scripts/venv.sh
	@touch $@

setup: .venv/ready ## The environment in .venv, with Spark and the tools
	@$(if $(filter setup,$(MAKECMDGOALS)),echo '$(READY)')
java: .venv/ready ## Java, found or installed
	@bash scripts/java.sh

postgres:
	@bash scripts/postgres.sh

demo: setup java ## The reference project on real Iceberg tables: applied, queried and taken back
	@$(PYTHON) -m demo.demo

demo-pipeline: setup java ## A log of 20 tenants, drained into tables while migrations change one of them
	@$(PYTHON) -m demo.pipeline

init-infra: setup java postgres ## Postgres, S3 and a REST catalog on 127.0.0.1, with the migrations applied
	@$(PYTHON) -m infra up

destroy-infra: setup ## Stop the servers of init-infra and delete their data
	@$(PYTHON) -m infra down

test: lint java postgres ## Everything that a change must pass
	@bash scripts/test.sh

lint: setup ## Style, types and the direction of imports
	@$(PYTHON) -m ruff check
	@$(PYTHON) -m ruff format --check
	@$(PYTHON) -m mypy --strict icemigrate
	@.venv/bin/lint-imports

test-quick: setup ## The tests that need no Spark and no servers
	@$(PYTHON) -m pytest --ignore=tests/spark --ignore=tests/servers

coverage: setup java postgres ## The tests, with the lines and branches that they reach
	@$(PYTHON) -m pytest --cov --cov-report=term

rust: setup ## The crates in rust/: built, linted and tested with their benchmarks, and their values compared with those of Arrow
	@bash scripts/rust.sh

bench-rust: ## The measurements of the crates, with Criterion
	@bash -c '. scripts/lib.sh; . scripts/cargo.sh; cargo bench --manifest-path rust/Cargo.toml --package icemigrate-benches'

soak: setup java ## Random migrations done and undone, many more of them and other ones each time (SOAK_EXAMPLES=15)
	@SOAK_EXAMPLES=$${SOAK_EXAMPLES:-15} $(PYTHON) -m pytest tests/spark/test_script_properties.py tests/spark/test_undo_properties.py

random-runs: setup java ## Random kills, pauses and changes of other clients, judged by a model (RUNS=2000)
	@$(PYTHON) -m tests.crash.model.random_runs --runs $${RUNS:-2000} --progress

ingest-kills: setup java ## Random kills of a pipeline, its writer and its servers; each entry is in a table once (KILLS=200)
	@$(PYTHON) -m tests.crash.ingest_kills --kills $${KILLS:-200}
	@$(PYTHON) -m tests.crash.load_kills --catalog sqlite --kills $${KILLS:-200}
	@$(PYTHON) -m tests.crash.load_kills --catalog rest --kills $${KILLS:-200}

bench: setup java ## The measurements in bench/, as ratios
	@set -e; for program in $$(grep -l __main__ bench/*.py); do \
		name=bench.$$(basename "$$program" .py); echo "== $$name"; $(PYTHON) -m "$$name"; done

docs: setup java ## The pages made from code, and what the commands on the others show
	@$(PYTHON) -m tests.support.played_documents
	@$(PYTHON) -m scripts.docs

clean: ## Take away all that was made
	rm -rf .venv .demo .demo-pipeline build dist rust/target *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
