# Each command sets up what it needs; only Python 3.11+ (with venv) and make must be there.
#
#   make serve PORT=9000            variables are given after the command
#   make test ARGS="-k journal"     ARGS goes to the program that the command runs
#   make UV=no test                 pip, even where uv is installed

HOST ?= 127.0.0.1
PORT ?= 8123
DATA_DIR ?= $(or $(THREADMARK_DATA_DIR),./.threadmark)
PYTHON ?= python3
UV ?=
ARGS ?=

export PYTHON UV
# Without bytecode on disk each of the hundreds of processes in the tests compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE
bin := .venv/bin
locked := pyproject.toml uv.lock constraints.txt

.DEFAULT_GOAL := help
.PHONY: help serve demo test quick check format bench soak lock

help: ## what can be done
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile

serve: .venv/.ready-run ## the server (HOST, PORT, DATA_DIR)
	@exec $(bin)/threadmark serve --host "$(HOST)" --port "$(PORT)" --data-dir "$(DATA_DIR)" $(ARGS)

demo: .venv/.ready-run ## the refund story, with a kill in the middle
	@exec $(bin)/python -m threadmark.examples.refund.demo $(ARGS)

test: .venv/.ready-dev ## the tests
	@exec $(bin)/pytest -n auto --dist loadfile -m "not soak" $(ARGS)

quick: .venv/.ready-dev ## the tests that start no process and no server, in under two minutes
	@exec $(bin)/pytest -n auto --dist loadfile -m "not soak" tests/unit tests/architecture tests/replay/test_golden.py tests/replay/test_golden_sql.py $(ARGS)

check: .venv/.ready-dev ## format, lint, strict types, import contract
	$(bin)/ruff format --check .
	$(bin)/ruff check .
	$(bin)/mypy
	$(bin)/lint-imports --no-logo

format: .venv/.ready-dev ## rewrite the code as `make check` wants it
	$(bin)/ruff format .
	$(bin)/ruff check --fix .

bench: .venv/.ready-dev ## the figures of bench/README.md, measured here
	@exec $(bin)/python -m bench $(ARGS)

soak: .venv/.ready-dev ## hundreds of kills; takes a while
	@exec $(bin)/pytest -m soak $(ARGS) tests

lock: ## after a change of dependencies: renew uv.lock and constraints.txt (needs uv)
	uv lock --default-index https://pypi.org/simple
	{ echo "# Written by 'make lock' from uv.lock, for pip."; \
	  uv export --frozen --all-groups --all-extras --no-emit-project --no-hashes --no-annotate --no-header; } > constraints.txt

# The environment is ready when its mark is newer than what it was made from.
.venv/.ready-run: $(locked)
	@sh scripts/environment.sh run

.venv/.ready-dev: $(locked)
	@sh scripts/environment.sh dev
