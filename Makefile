# Each target builds its own virtual environment when there is none; only Python 3.11 is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Freed memory stays with the process: allocating anew costs more than the arithmetic at small sizes.
export MALLOC_TOP_PAD_ ?= 1073741824
export MALLOC_MMAP_MAX_ ?= 0
export MALLOC_TRIM_THRESHOLD_ ?= 10737418240

.PHONY: demo test lint format bench clean train-tiny train-tiny-moe align-tiny align-tiny-moe

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

# How the embedded models were made: hours; killed, the same command goes on (docs/embedded.md).
train-tiny train-tiny-moe: train-%: $(READY)
	$(BIN)/python recipes/embedded.py $*

# Their alignment from the shipped weights, or from others: START=runs/tiny/model
align-tiny align-tiny-moe: align-%: $(READY)
	$(BIN)/python recipes/align_embedded.py $* $(START)

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis dist build
