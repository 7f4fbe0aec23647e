"""The number of threads for `n_jobs`, as in scikit-learn and joblib."""

from __future__ import annotations

import numbers
import os
from typing import Any

import joblib
from joblib.parallel import get_active_backend

MAX_THREADS = 4096
"""Largest number of threads."""


def n_threads(n_jobs: Any) -> int:
    """Return the number of threads.

    None is one thread per core, or what `joblib.parallel_config` says; -1 is one thread per core, -2 one fewer, and so
    on. Within a worker of joblib, "one per core" is the share of the worker.
    """
    if n_jobs is None:
        n_jobs = get_active_backend()[1]
    if n_jobs is None:
        return _n_cores()
    is_valid = isinstance(n_jobs, numbers.Integral) and n_jobs != 0 and n_jobs <= MAX_THREADS
    if not is_valid:
        raise ValueError(
            f"n_jobs = {n_jobs!r}: expected None, a negative number (-1: all cores, -2: all but one) "
            f"or a whole number from 1 to {MAX_THREADS}"
        )
    return int(n_jobs) if n_jobs > 0 else max(_n_cores() + 1 + int(n_jobs), 1)


def _n_cores() -> int:
    """Return the number of cores that this process, or this worker of joblib, may use."""
    n_cores = int(joblib.cpu_count())
    if not getattr(get_active_backend()[0], "nesting_level", 0):
        return n_cores
    # joblib limits the threads inside of its workers by the variables of OpenMP; without them, a worker is one thread
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(int(limit), n_cores) if limit.isdecimal() and int(limit) > 0 else 1
