# make book            everything, from nothing: environment, data, notebooks, rendered book
# make book PROFILE=gold
# make test            the tests
# make js              the explorer's script from its modules, after a change to these; needs node and npm
PROFILE ?= sample
PYTHON ?= python3
BIN := .venv/bin

.PHONY: book test lint js bench serve clean

book: .venv/ready
	$(BIN)/bertlook book --profile $(PROFILE)

test: .venv/ready
	$(BIN)/pytest

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check src tests benchmarks notebooks
	$(BIN)/mypy

js:
	cd src/explorer && npm ci --silent && npm run --silent check && npm test && npm run --silent build

bench: .venv/ready
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

serve: book
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/$(PROFILE)/html 8000

clean:
	rm -rf _build

.venv/ready: requirements.txt requirements-dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "bertlook needs Python 3.11 or later: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt -r requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch .venv/ready
