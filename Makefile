# Each target does its own set-up: a fresh machine needs cargo, python3 and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# virtual environment of the libraries that benchmarks compare with
PEERS := $(abspath .venv-peers)
# The same packages for every target. maturin builds the binding crate: its test binary would need libpython.
RUST := --release --workspace --exclude softwood-py

export PYO3_PYTHON := $(abspath $(BIN)/python)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-all test-rust test-python lint lint-rust lint-python audit bench bench-peers bench-speed bench-regression-peers bench-bandit-peers bench-causal-peers bench-quality bench-soft-trees bench-vart bench-gp bench-rnn-tree bench-truth bench-design bench-bandits bench-causal docs docs-output gallery venv python

help:
	@echo "make demo      fit a small model and draw its predictive distribution"
	@echo "make test      every Rust and Python test"
	@echo "make test-all  every test, the slow ones included"
	@echo "make lint      rustfmt, clippy, licences and sources of dependencies, import layers, typos, ruff, mypy"
	@echo "make audit     cargo-deny: all of deny.toml, with advisories from the network"
	@echo "make bench     benchmarks of the hot loops"
	@echo "make bench-peers    compare with other libraries: bench-speed, bench-regression-peers (into docs/benchmarks.md),"
	@echo "                    bench-bandit-peers, bench-causal-peers (into docs/experiments)"
	@echo "make bench-quality  compare scores with CatBoost and the papers, into docs/benchmarks.md"
	@echo "make bench-soft-trees  compare soft-tree, tree and ldt with their paper, into docs/experiments/soft-tree.md"
	@echo "make bench-vart  compare vart with its paper, vst and sglb, into docs/experiments/vart.md"
	@echo "make bench-gp  compare gp with scikit-learn, into docs/experiments/gp.md"
	@echo "make bench-bandits  regret of agents on public bandit problems, into docs/experiments/bandits.md"
	@echo "make bench-design  rows to label next: chosen by the model or at random, into docs/experiments/design.md"
	@echo "make bench-rnn-tree  compare rnn-tree with its paper, tree and JAX, into docs/experiments/rnn-tree.md"
	@echo "make bench-truth  knowledge uncertainty on problems with known truth and in gaps of public tables, into docs/experiments/truth.md"
	@echo "make bench-causal  average effects with known truth beside the paper, into docs/experiments/causal.md"
	@echo "make docs-output    run README and guides again and renew the outputs and the picture that they show"
	@echo "make gallery   draw the figures of the papers, into docs/gallery.md and docs/img; SOFTWOOD_DATA is the data directory"
	@echo "make docs      build the Rust documentation; broken links are errors"
	@echo "make python    install the Python package, editable, in $(VENV)"

demo:
	cargo run --release -p softwood-cli --no-default-features -- demo

test: test-rust test-python

test-rust:
	cargo test $(RUST)

test-python: python
	cargo build $(RUST)
	$(BIN)/python -m pytest

test-all: python
	cargo test $(RUST) -- --include-ignored
	cargo test --release -p softwood-io --no-default-features
	cargo clippy --release -p softwood-cli --no-default-features -- -D warnings
	cargo build $(RUST)
	SOFTWOOD_SLOW=1 $(BIN)/python -m pytest

lint: lint-rust lint-python

lint-rust: venv
	cargo fmt --all --check
	$(BIN)/python python/tools/check_dependencies.py
	@if cargo deny --version > /dev/null 2>&1 && timeout 60 cargo deny fetch db > /dev/null 2>&1; then cargo deny check advisories; \
	else echo "advisories: not checked, because cargo-deny or its database is not available (see make audit)"; fi
	cargo clippy --release --workspace --all-targets -- -D warnings
	cargo test $(RUST) --test it layers

# needs cargo-deny (`cargo install --locked cargo-deny`) and, for the advisories, a network
audit:
	cargo deny check

lint-python: venv
	$(BIN)/typos
	$(BIN)/ruff check python
	$(BIN)/ruff format --check python
	$(BIN)/mypy

bench:
	cargo bench -p softwood --features bench

bench-peers: bench-speed bench-regression-peers bench-bandit-peers bench-causal-peers

bench-speed: python $(PEERS)/ready
	$(BIN)/python -m benches.peers --fresh --peers $(PEERS)

bench-regression-peers: python $(PEERS)/ready
	$(BIN)/python -m benches.regression_peers --fresh --peers $(PEERS)

bench-bandit-peers: python $(PEERS)/ready
	$(BIN)/python -m benches.bandit_peers --fresh --peers $(PEERS)

bench-causal-peers: python $(PEERS)/ready
	$(BIN)/python -m benches.causal_peers --fresh --peers $(PEERS)

bench-quality: python $(PEERS)/ready
	$(BIN)/python -m benches.quality --peers $(PEERS)

# neural-trees is compared if $(PEERS) has it: `.venv-peers/bin/pip install neural-trees`
bench-soft-trees: python
	cargo build $(RUST)
	$(BIN)/python -m benches.soft_trees --fresh --peers $(PEERS)/bin/python

bench-vart: python
	$(BIN)/python -m benches.vart --fresh --parts tables,large,leaves
	$(BIN)/python -m benches.vart --quick --columns depth3,depth5,depth7,depth10,one_fit,vst_one_fit,forest

bench-gp: python
	$(BIN)/python -m benches.gp --fresh
	$(BIN)/python -m benches.noise_steps --fresh

bench-bandits: venv
	cargo build $(RUST)
	$(BIN)/python -m benches.bandits

bench-design: python
	$(BIN)/python -m benches.design --fresh

bench-rnn-tree: python $(PEERS)/ready
	$(BIN)/python -m benches.rnn_tree --fresh --peers $(PEERS)/bin/python

bench-truth: python $(PEERS)/ready
	$(BIN)/python -m benches.truth --quick --peers $(PEERS)/bin/python

bench-causal: python
	$(BIN)/python -m benches.causal

$(PEERS)/ready: python/benches/requirements.txt
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet -r python/benches/requirements.txt
	touch $@

docs-output: python
	cargo build $(RUST)
	SOFTWOOD_WRITE_DOCS=1 $(BIN)/python -m pytest python/tests/test_docs.py

# figures whose data are missing keep their picture only if target/gallery has it
gallery:
	cargo run --release -p softwood-cli -- reproduce figures -o target/gallery
	cp target/gallery/*.svg docs/img
	sed 's|](\([a-z0-9-]*\.svg\))|](img/\1)|' target/gallery/gallery.md > docs/gallery.md

docs: venv
	RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps

venv: $(VENV)/ready

$(VENV)/ready: python/requirements-dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r python/requirements-dev.txt
	touch $@

python: venv
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release
