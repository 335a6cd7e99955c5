# Every target bootstraps what it needs: a virtual environment in .venv, the Python packages of requirements.lock, and a release build of
# the kernel. Needed on the machine: Python 3.11 or newer, a Rust toolchain, Java 17 for Spark.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
MINUTES ?= 50
export PYTHONWARNDEFAULTENCODING :=
export PYO3_PYTHON := $(abspath $(BIN)/python)

.PHONY: build demo test test-all lint bench bench-peers fuzz golden format clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.packages: requirements.lock | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@touch $@

$(VENV)/.kernel: $(RUST_SOURCES) pyproject.toml | $(VENV)/.packages
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --quiet
	@touch $@

build: $(VENV)/.packages $(VENV)/.kernel  ## .venv with the package installed as a release build

demo: build  ## live views on Spark in local mode, proved equal to recomputation
	$(BIN)/everview demo

test: build  ## all tests: Rust, Python, Spark, documentation
	$(BIN)/python tests/run.py

test-all: build  ## and the public queries that take long: all of TPC-H, SSB and TPC-DS against Spark SQL
	EVERVIEW_ALL=1 $(BIN)/python tests/run.py

fuzz: build  ## generated tests with fresh seeds, for MINUTES
	$(BIN)/python tests/run.py fuzz $(MINUTES)

lint: build  ## formatting, lints and types
	cargo fmt --check
	cargo clippy --release --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: build  ## put the sources into their canonical form
	cargo fmt
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: build  ## benchmarks against the peers, ratios of one run
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.spark.run

bench-peers: build  ## benchmarks against differential-dataflow and dbsp; builds them first, which takes long
	cd benchmarks/rust-peers && RUSTFLAGS="-C target-cpu=native" cargo build --release --locked
	$(BIN)/python -m benchmarks.bench_peers

golden: build  ## rewrite the golden files
	EVERVIEW_GOLDEN=rewrite $(BIN)/python -m pytest tests/unit/plan tests/unit/rules tests/meta/test_functions_page.py

clean:
	rm -rf $(VENV) target
