# Each target builds its own virtual environment when there is none; only Python 3.11 is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
# Freed memory stays with the process: allocating anew costs more than the arithmetic at small sizes.
export MALLOC_TOP_PAD_ ?= 1073741824
export MALLOC_MMAP_MAX_ ?= 0
export MALLOC_TRIM_THRESHOLD_ ?= 10737418240

.PHONY: demo test battery lint format bench docs lock clean train-tiny train-tiny-moe align-tiny align-tiny-moe

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) 'pip>=25.1'
	$(PIP) -c constraints.txt -e '.[devices,eval,lowbit,parquet,plot,ray,serve,train]' --group dev --group docs
	touch $@

demo: $(READY)
	$(BIN)/xpredflow demo

test: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal --ignore tests/accelerator
	$(BIN)/pytest -n 2 --dist worksteal tests/accelerator  # torch must know that device before anything else happens

# Damaged files, full disks, kills, random commands, hostile programs (docs/reliability.md).
battery: $(READY)
	$(BIN)/python -m tests.battery

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Speed and memory, one JSON line each, then a table of all (docs/speed.md).
bench: $(READY)
	$(BIN)/python benchmarks/table.py

# The documentation as pages that open without a server: site/index.html
docs: $(READY)
	$(BIN)/python recipes/site_pages.py
	$(BIN)/zensical build --clean --strict -f mkdocs.yml

# How the embedded models were made: hours; killed, the same command goes on (docs/embedded.md).
train-tiny train-tiny-moe: train-%: $(READY)
	$(BIN)/python recipes/embedded.py $*

# Their alignment from the shipped weights, or from others: START=runs/tiny/model
align-tiny align-tiny-moe: align-%: $(READY)
	$(BIN)/python recipes/align_embedded.py $* $(START)

# The newest versions that fit pyproject.toml, tried by the tests before they are written down.
lock:
	rm -rf $(VENV) && $(PYTHON) -m venv $(VENV) && $(PIP) 'pip>=25.1'
	$(PIP) "$$(grep '^torch==' constraints.txt)"  # first: an open range may pull gigabytes of CUDA
	$(PIP) -e '.[devices,eval,lowbit,parquet,plot,ray,serve,train]' --group dev --group docs
	touch $(READY) && $(MAKE) test
	head -n 2 constraints.txt > constraints.new
	$(BIN)/pip freeze --exclude-editable --exclude pip | sed 's/+[a-z0-9.]*$$//' >> constraints.new
	mv constraints.new constraints.txt && touch $(READY)

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .cache dist build site
