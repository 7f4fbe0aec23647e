"""The number of threads for `n_jobs`, also within workers of joblib."""

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config

from softwood import TreeRegressor, evaluate
from softwood._threads import MAX_THREADS, n_threads


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def test_negative_numbers_count_from_the_number_of_cores():
    found = [n_threads(n_jobs) for n_jobs in (None, -1, -2, -8, -9, -100, 1, 3, np.int64(12))]
    assert found == [8, 8, 7, 1, 1, 1, 1, 3, 12]


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", 10**30, MAX_THREADS + 1])
def test_other_numbers_are_rejected(n_jobs):
    X = np.arange(20.0)[:, None]
    with pytest.raises(ValueError, match="n_jobs = "):
        TreeRegressor(n_jobs=n_jobs).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="n_jobs = "):
        evaluate(TreeRegressor(), X, X[:, 0], n_jobs=n_jobs)


def test_the_number_of_joblib_counts_where_none_is_given():
    with parallel_config(n_jobs=3):
        assert [n_threads(None), n_threads(-1), n_threads(2)] == [3, 8, 2]
    with parallel_config(n_jobs=-2):
        assert n_threads(None) == 7
    assert n_threads(None) == 8


def in_worker(_):
    return [n_threads(n_jobs) for n_jobs in (None, -1, -2, 4)]


def test_a_worker_of_joblib_has_one_thread():
    for backend in ("threading", "multiprocessing"):
        with parallel_config(backend=backend):
            assert Parallel(n_jobs=2)(delayed(in_worker)(i) for i in range(2)) == 2 * [[1, 1, 1, 4]]


def limits_of_worker(_):
    import joblib

    from softwood._threads import n_threads

    return joblib.cpu_count(), n_threads(None), n_threads(-1)


def test_a_worker_process_has_the_share_that_joblib_gives_it():
    limits = delayed(limits_of_worker)
    n_cores, *found = Parallel(n_jobs=2, backend="loky")(limits(i) for i in range(2))[0]
    assert found == 2 * [max(n_cores // 2, 1)]
    with parallel_config(backend="loky", inner_max_num_threads=2):
        n_cores, *found = Parallel(n_jobs=2)(limits(i) for i in range(2))[0]
    assert found == 2 * [min(2, n_cores)]


def test_the_limit_of_cores_is_respected(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert [n_threads(None), n_threads(-1)] == [1, 1]
