"""The seed of the library from scikit-learn's `random_state`."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def seed_of(random_state: Any) -> int:
    """Return an integer unchanged, so that it equals `--seed` of the command line; draw a seed from anything else."""
    if isinstance(random_state, numbers.Integral):
        seed = int(random_state)
        if not 0 <= seed < 2**64:
            raise ValueError(f"random_state = {seed}: expected a whole number from 0 to 2**64 - 1")
        return seed
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    return int(check_random_state(random_state).randint(2**31 - 1))
