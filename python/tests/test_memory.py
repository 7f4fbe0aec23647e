"""Requests beyond the memory raise `MemoryError` with their size; the interpreter goes on."""

import subprocess
import sys

import numpy as np
import pytest

from softwood import TreeClassifier, TreeRegressor

X = np.random.default_rng(0).normal(size=(300, 2))
MANY = 4_000_000_000
"""A number of draws whose values take more memory than any machine of today gives to a process."""


@pytest.fixture(scope="module")
def regression():
    return TreeRegressor(n_members=2, random_state=0).fit(X, X[:, 0])


@pytest.fixture(scope="module")
def classification():
    return TreeClassifier(n_members=2, random_state=0).fit(X, X[:, 0] > 0)


@pytest.mark.parametrize("question", ["sample", "sample_functions"])
def test_draws_beyond_the_memory_raise(regression, classification, question):
    for model in (regression, classification):
        dist = model.predict_dist(X)
        with pytest.raises(MemoryError, match=r"the result \(300 x \d+ numbers\) would take"):
            getattr(dist, question)(MANY)
        assert len(getattr(dist, question)(3)) == 300


def test_quantiles_beyond_the_memory_raise(regression):
    dist = regression.predict_dist(X)
    levels = np.broadcast_to(0.5, (10**14,))
    with pytest.raises(MemoryError, match="would take"):
        dist.quantile(levels)
    with pytest.raises(MemoryError, match="would take"):
        dist.contrast(dist, levels)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_rows_beyond_the_memory_raise(regression, classification, dtype):
    table = np.broadcast_to(np.zeros(2, dtype=dtype), (10**14, 2))
    for model in (regression, classification):
        with pytest.raises(MemoryError, match=r"a copy of X \(100000000000000 x 2 numbers\) would take 1600000.0 GB"):
            model.predict(table)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space of a process")
def test_the_interpreter_survives_a_limit_of_its_address_space():
    script = """
import resource
import numpy as np
from softwood import TreeRegressor

X = np.random.default_rng(0).normal(size=(300, 10))
model = TreeRegressor(n_members=2, random_state=0, n_jobs=1).fit(X, X[:, 0])
dist = model.predict_dist(X)
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
questions = [
    lambda: dist.sample(10**7),
    lambda: dist.sample_functions(10**7),
    lambda: dist.quantile(np.broadcast_to(0.5, (10**7,))),
    lambda: dist.contrast(dist, np.broadcast_to(0.5, (10**7,))),
    lambda: model.predict(np.broadcast_to(0.0, (10**9, 10))),
    lambda: model.predict(np.broadcast_to(np.float32(0), (10**9, 10))),
    lambda: model.fit(np.broadcast_to(0.0, (10**9, 10)), np.broadcast_to(0.0, 10**9)),
]
for question in questions:
    try:
        question()
    except MemoryError as error:
        print(error)
print("alive", model.predict(X[:2]).shape)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert lines[-1] == "alive (2,)"
    assert len(lines) == 8
    assert all("would take" in line for line in lines[:-1]), found.stdout
