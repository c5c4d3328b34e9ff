# Each target builds its own virtual environment when there is none; only Python 3.11 is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Freed memory stays with the process: allocating anew costs more than the arithmetic at small sizes.
export MALLOC_TOP_PAD_ ?= 1073741824
export MALLOC_MMAP_MAX_ ?= 0
export MALLOC_TRIM_THRESHOLD_ ?= 10737418240

.PHONY: demo test lint format bench clean

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/xpredflow demo

test: $(READY)
	$(BIN)/pytest -n 2

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	$(BIN)/python benchmarks/load.py

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis dist build
