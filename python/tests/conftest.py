"""Estimators of every family with parameters whose fit takes a moment, and small tables with a known target."""

from functools import partial

import numpy as np
import pytest

from softwood._base import REGISTRY

BOOSTED = {"n_estimators": 20, "n_members": 4, "max_depth": 2, "learning_rate": 0.1, "random_state": 0}

QUICK = {
    "rnn-tree": {"n_steps": 40, "n_restarts": 2, "max_depth": 2, "n_hidden": 8, "n_members": 8, "random_state": 0},
    "vst": {
        "max_depth": 1,
        "leaf_mixing": "mixture",
        "scaling": "standard",
        "rotation": "none",
        "squares": False,
        "n_epochs": 5,
        "n_draws": 1,
        "n_members": 8,
        "random_state": 0,
    },
    "vsgbm": {
        "n_estimators": 2,
        "max_depth": 1,
        "leaf_mixing": "blend",
        "scaling": "standard",
        "rotation": "none",
        "squares": False,
        "n_epochs": 5,
        "n_draws": 1,
        "n_fits": 1,
        "n_members": 8,
        "random_state": 0,
    },
    "vart": {
        "max_depth": 1,
        "leaf_mixing": "blend",
        "scaling": "standard",
        "rotation": "none",
        "squares": False,
        "n_epochs": 5,
        "n_draws": 1,
        "n_fits": 1,
        "n_members": 8,
        "random_state": 0,
    },
    "sgb": BOOSTED,
    "sglb": BOOSTED,
    "forest": {"n_estimators": 20, "n_members": 4, "random_state": 0},
    "tree": {"n_members": 4, "random_state": 0},
    "ldt": {"n_members": 4, "random_state": 0},
    "gp": {"max_iterations": 10, "n_restarts": 0, "n_members": 4, "random_state": 0},
    "gp-rnn-tree": {
        "max_iterations": 10,
        "n_restarts": 0,
        "n_steps": 20,
        "n_tree_restarts": 1,
        "max_depth": 2,
        "n_members": 4,
        "random_state": 0,
    },
    "soft-tree": {"n_epochs": 2, "max_leaf_nodes": 2, "n_members": 4, "random_state": 0},
}


@pytest.fixture(params=sorted({family for family, _ in REGISTRY}))
def family(request):
    return request.param


@pytest.fixture
def quick(family):
    return dict(QUICK[family])


@pytest.fixture
def quick_of():
    """Return the parameters of a family by its name."""
    return lambda name: dict(QUICK[name])


@pytest.fixture
def regressor(family, quick):
    return partial(REGISTRY[family, "regression"], **quick)


@pytest.fixture
def classifier(family, quick):
    if (family, "classification") not in REGISTRY:
        pytest.skip(f"{family} is for regression")
    return partial(REGISTRY[family, "classification"], **quick)


@pytest.fixture(params=["regression", "classification"])
def kind(family, request):
    """Return the estimator class of every family and task."""
    if (family, request.param) not in REGISTRY:
        pytest.skip(f"{family} is for regression")
    return REGISTRY[family, request.param]


@pytest.fixture
def regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, X[:, 0] - 2 * X[:, 1] + rng.normal(scale=0.3, size=120)


@pytest.fixture
def classification():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 3))
    return X, np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]


@pytest.fixture
def mixed():
    """Return columns as lists (two numeric, one of texts, one of booleans; missing cells in three) and a target."""
    rng = np.random.default_rng(2)
    n = 90
    size = [None if i % 11 == 0 else float(value) for i, value in enumerate(rng.normal(size=n))]
    count = [int(value) for value in rng.integers(0, 9, size=n)]
    colour = [
        None if i % 7 == 0 else ["red", "green", "blue"][value] for i, value in enumerate(rng.integers(0, 3, size=n))
    ]
    flag = [None if i % 13 == 0 else bool(value) for i, value in enumerate(rng.integers(0, 2, size=n))]
    target = [float(c + 3 * (k == "red") + e) for c, k, e in zip(count, colour, rng.normal(size=n), strict=True)]
    return {"size": size, "count": count, "colour": colour, "flag": flag}, np.array(target)
