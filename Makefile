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

.PHONY: demo test lint format bench lock clean train-tiny train-tiny-moe align-tiny align-tiny-moe

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) 'pip>=25.1'
	$(PIP) -c constraints.txt -e '.[eval,parquet,plot,train]' --group dev
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

# The embedded models from nothing: hours; killed, the same command goes on (docs/embedded.md).
EVERYTHING := minicode,minimath,minimath,sums,minicode,minimath,minimath
MORE_MINIMATH := minimath,minicode,minimath,sums,minimath
FRESH := 1024:sums;1280:minicode,minimath,minicode,minimath,sums
FURTHER := -o tail_share=0.125 -o whole_from=0
pretrain = test -e runs/$(1)/model || $(BIN)/xpredflow pretrain runs/$(1) $(2) \
	$$(test -e runs/$(1)/state.pt && echo --resume)

train-tiny: $(READY)
	$(call pretrain,tiny-1,-n 8192 -o decay_share=0.55 -o tail_share=0.125 -o whole_from=2560 \
		-o later='$(FRESH);4608:$(EVERYTHING)')
	$(call pretrain,tiny-2,-n 2304 -o start=runs/tiny-1/model -o seed=1 -o lr=2e-3 -o warmup=100 \
		-o decay_share=0.8 $(FURTHER) -o later=0:$(EVERYTHING))
	$(call pretrain,tiny,-n 1024 -o start=runs/tiny-2/model -o seed=2 -o lr=1e-3 -o warmup=100 \
		-o decay_share=0.8 $(FURTHER) -o later=0:$(EVERYTHING))

train-tiny-moe: $(READY)
	$(call pretrain,tiny-moe-1,--shape tiny-moe -n 3584 -o tail_share=0.125 -o whole_from=2816 \
		-o later='$(FRESH);2560:$(EVERYTHING)')
	$(call pretrain,tiny-moe,--shape tiny-moe -n 768 -o start=runs/tiny-moe-1/model -o seed=1 \
		-o lr=2e-3 -o warmup=50 -o decay_share=0.85 $(FURTHER) \
		-o later=0:$(MORE_MINIMATH))

# Their alignment from the shipped weights (or START=runs/tiny/model): full-budget answers and the
# paper's alignment, then twice the flow's own answers and an alignment on states that lead there.
ONCE := -n 300 -o lr=3e-4 -o clean_entropy=0.5 -o keep_reference=1.5
BY_FLOW := -d flow -o policy=power:8 -o steps=1/4 --retry --keep solved
WALKED := -n 400 -o lr=2e-4 -o clean_entropy=0.1 -o walk=0.4 -o reference_every=4
WALKED_ON := -n 600 -o lr=3e-4 -o clean_entropy=0.2 -o walk=0.5 -o reference_every=4
answers = $(BIN)/xpredflow self-generate -m $(2) --data minicode,minimath --dtype float32 \
	--out runs/$(1).jsonl $(3)
align = test -e runs/$(1)/model || $(BIN)/xpredflow align runs/$(1) -m $(2) \
	--answers runs/$(3).jsonl -o dtype=float16 $(4) $$(test -e runs/$(1)/state.pt && echo --resume)

align-tiny align-tiny-moe: align-%: $(READY)
	$(call answers,$*-own,$(or $(START),$*),-n $(if $(findstring moe,$*),1200,3000))
	$(call align,$*-once,$(or $(START),$*),$*-own,$(ONCE))
	$(call answers,$*-flow,runs/$*-once/model,-n $(if $(findstring moe,$*),6000,10000) $(BY_FLOW) \
		-o commit_above=0.95)
	$(call align,$*-walked,runs/$*-once/model,$*-flow,$(WALKED))
	$(call answers,$*-flow-2,runs/$*-walked/model,-n 6000 $(BY_FLOW) -o commit_above=0.9 \
		-o trust=held)
	$(call align,$*-walked-2,runs/$*-walked/model,$*-flow-2,$(WALKED_ON))

# The newest versions that fit pyproject.toml, tried by the tests before they are written down.
lock:
	rm -rf $(VENV) && $(PYTHON) -m venv $(VENV) && $(PIP) 'pip>=25.1'
	$(PIP) -e '.[eval,parquet,plot,train]' --group dev
	$(BIN)/pytest -n 2
	head -n 2 constraints.txt > constraints.new
	$(BIN)/pip freeze --exclude-editable --exclude pip | sed 's/+[a-z0-9.]*$$//' >> constraints.new
	mv constraints.new constraints.txt && touch $(READY)

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis dist build
