# The list of acts. Each does its own set-up: a fresh machine needs cargo, python3 and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# libraries to compare with, in an environment of their own
PEERS := $(abspath .venv-peers)
# one selection of packages for every act, so that dependencies are compiled once; the binding crate is built by
# maturin, and its own test binary could not be linked without libpython
RUST := --release --workspace --exclude softwood-py

export PYO3_PYTHON := $(abspath $(BIN)/python)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-all test-rust test-python lint lint-rust lint-python bench bench-peers bench-quality docs venv python

help:
	@echo "make demo      fit a small model and draw what it knows"
	@echo "make test      every Rust and Python test"
	@echo "make test-all  the same with the slow ones"
	@echo "make lint      rustfmt, clippy, layers, typos, ruff, mypy"
	@echo "make bench     the speed of the hot loops"
	@echo "make bench-peers    speed beside CatBoost and LightGBM, into docs/benchmarks.md"
	@echo "make bench-quality  scores on public tables beside CatBoost and the paper, into docs/benchmarks.md"
	@echo "make docs      the Rust documentation, broken links denied"
	@echo "make python    the Python package, editable, in $(VENV)"

demo:
	cargo run --release -p softwood-cli -- demo

test: test-rust test-python

test-rust:
	cargo test $(RUST)

test-python: python
	cargo build $(RUST)
	$(BIN)/python -m pytest

test-all: python
	cargo test $(RUST) -- --include-ignored
	cargo test --release -p softwood-io --no-default-features
	cargo build $(RUST)
	$(BIN)/python -m pytest

lint: lint-rust lint-python

lint-rust: venv
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets -- -D warnings
	cargo test $(RUST) --test it layers

lint-python: venv
	$(BIN)/typos
	$(BIN)/ruff check python
	$(BIN)/ruff format --check python
	$(BIN)/mypy

bench:
	cargo bench -p softwood --features bench

bench-peers: python $(PEERS)/ready
	$(BIN)/python -m benches.peers --fresh --peers $(PEERS)

bench-quality: python $(PEERS)/ready
	$(BIN)/python -m benches.quality --peers $(PEERS)

$(PEERS)/ready: python/benches/requirements.txt
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet -r python/benches/requirements.txt
	touch $@

docs: venv
	RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps

venv: $(VENV)/ready

$(VENV)/ready: python/requirements-dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r python/requirements-dev.txt
	touch $@

python: venv
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release
