# `make` alone shows what there is to do. Everything runs in .venv, which the first target that
# needs it makes; a stamp file per dependency group re-installs when the package's build inputs change.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# `make test TARGET=x86-64-v2`: this target stands for the machine, in every process of the tests.
ifdef TARGET
export TILEWRIGHT_TARGET := $(TARGET)
endif

BUILD_INPUTS := pyproject.toml $(wildcard setup.py) $(wildcard src/tilewright/runtime/native/*.[ch])

.DEFAULT_GOAL := help
.PHONY: help demo test check format fuzz fuzz-graphs fuzz-hostile replay sanitize load conformance bench package clean test-ray

help: ## show this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.installed ## set everything up, run the main example and show its result
	@$(BIN)/python examples/demo.py

test: $(VENV)/.installed-test ## set everything up, run the demo, then all tests; TARGET=x86-64-v2: as on such a machine
	@$(BIN)/python examples/demo.py
	@$(PYTEST)

test-ray: $(VENV)/.installed-ray ## tests of measuring on Ray: a cluster of two nodes on this machine
	@$(BIN)/python -m pytest tests/ray tests/unit/tuning/measure

check: $(VENV)/.installed-lint ## formatter, linter and type checker, changing nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.installed-lint ## let the formatter and the linter mend what they can
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

fuzz: $(VENV)/.installed-test ## the long property profile: fresh random programs, many more of them
	@$(PYTEST) --long tests/property

fuzz-graphs: $(VENV)/.installed-fuzz ## random models against onnxruntime and the ONNX reference
	@$(BIN)/python -m fuzz graphs --count 500 --workers $(JOBS) --seed $(shell date +%s) $(FUZZ)

fuzz-hostile: $(VENV)/.installed ## damaged and malicious models, artefacts and kept kernels
	@$(BIN)/python -m fuzz hostile --count 1000 --seconds 600 --keep build/fuzz/hostile $(FUZZ)

replay: $(VENV)/.installed ## what differs in schedules, loops and LLVM text from another commit; BASE=main
	@$(BIN)/python -m replay against $(BASE) $(REPLAY)

sanitize: $(VENV)/.installed-test ## generated code between forbidden pages; it and the C library under the sanitizers
	@$(PYTEST) --long tests/memory tests/native

load: $(VENV)/.installed-test ## many callers, sessions and models for long, with what they measure
	@$(BIN)/python -m pytest --long -rP tests/load

conformance: $(VENV)/.installed-peers ## the node tests of the onnx package, compiled: a tally by operator
	@$(BIN)/python scripts/conformance.py

bench: $(VENV)/.installed-peers ## compare with the peers; arguments in BENCH="matmul --threads 1"
	@$(BIN)/python -m benchmarks $(BENCH)

package: $(BIN)/python ## source distribution and wheel into dist/, built and tried in fresh environments
	@$(BIN)/python scripts/check_package.py

clean: ## remove the environment, build products and caches
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A Python without `ensurepip` (Debian without python3-venv) can still use the pip of the system.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "tilewright needs Python 3.11 or newer: try 'make PYTHON=/path/to/python3.11 ...'" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { \
	  rm -rf $(VENV) && $(PYTHON) -m venv --without-pip $(VENV) && \
	  $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; } || { \
	  rm -rf $(VENV); echo "cannot make $(VENV): install python3-venv or pip" >&2; exit 1; }
	@$(PIP_INSTALL) 'pip>=25.1'  # the first release that installs dependency groups

PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(VENV)/.installed: $(BUILD_INPUTS) | $(BIN)/python
	@echo "installing tilewright into $(VENV) ..."
	@$(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.installed-%: $(BUILD_INPUTS) | $(BIN)/python
	@echo "installing tilewright and what '$*' needs into $(VENV) ..."
	@$(PIP_INSTALL) -e . --group $*
	@touch $@ $(VENV)/.installed
