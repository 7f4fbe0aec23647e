"""Measures one model on one generated table in this process and prints one JSON object.

`benches.peers` runs it with the interpreter of the environment that has the library of the model.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benches.measure import peak_memory, reset_peak_memory, timed

Array = NDArray[np.float64]
N_VIRTUAL = 10
N_TEST = 100_000


@dataclass(frozen=True)
class Problem:
    """Training rows, test rows and boosting parameters. The target is Normal; mean and scale depend on the inputs."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    n_trees: int
    learning_rate: float


def problem(n_rows: int, n_columns: int, n_trees: int, learning_rate: float) -> Problem:
    """Generate the rows; they are equal for all models."""
    rng = np.random.default_rng(0)

    def rows(n: int) -> tuple[Array, Array]:
        X = rng.random((n, n_columns))
        mean = np.sin(6 * X[:, 0]) + 2 * X[:, 1] * X[:, 2] + (X[:, 3] > 0.5)
        return X, mean + (0.1 + 0.4 * X[:, 4]) * rng.standard_normal(n)

    return Problem(*rows(n_rows), *rows(N_TEST), n_trees, learning_rate)


def normal_nll(y: Array, mean: Array, variance: Array) -> Array:
    """Return the negative log density of each row under Normal distributions; leading axes are members."""
    loss: Array = 0.5 * (np.log(2 * np.pi * variance) + (y - mean) ** 2 / variance)
    return loss


def mixture_nll(y: Array, mean: Array, variance: Array) -> float:
    """Return the mean negative log density under the mixture of the members (first axis) with equal weights."""
    members = -normal_nll(y, mean, variance)
    top = members.max(axis=0)
    return float(-np.mean(top + np.log(np.mean(np.exp(members - top), axis=0))))


def catboost(data: Problem) -> dict[str, float]:
    """Fit mean and scale by CatBoost's Langevin boosting."""
    from catboost import CatBoostRegressor

    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty",
        posterior_sampling=True,
        iterations=data.n_trees,
        depth=6,
        learning_rate=data.learning_rate,
        border_count=254,
        thread_count=1,
        random_seed=0,
        verbose=False,
        allow_writing_files=False,
    )
    found = _fit(lambda: model.fit(data.X, data.y))
    moments = model.predict(data.X_test, prediction_type="RMSEWithUncertainty", thread_count=1)
    found["nll"] = float(normal_nll(data.y_test, moments[:, 0], moments[:, 1]).mean())
    found["rmse"] = _rmse(data, moments[:, 0])

    def virtual(kind: str) -> Any:
        return model.virtual_ensembles_predict(
            data.X_test, prediction_type=kind, virtual_ensembles_count=N_VIRTUAL, thread_count=1
        )

    found["predict_virtual"] = min(timed(lambda: virtual("TotalUncertainty"))[1] for _ in range(3))
    members = virtual("VirtEnsembles")
    found["nll_virtual"] = mixture_nll(data.y_test, members[:, :, 0].T, members[:, :, 1].T)
    return found


def lightgbm(data: Problem) -> dict[str, float]:
    """Fit the mean by LightGBM."""
    import lightgbm as lgb

    model = lgb.LGBMRegressor(
        n_estimators=data.n_trees,
        max_depth=6,
        num_leaves=64,
        learning_rate=data.learning_rate,
        max_bin=255,
        n_jobs=1,
        random_state=0,
        verbose=-1,
    )
    found = _fit(lambda: model.fit(data.X, data.y))
    found["rmse"] = _rmse(data, model.predict(data.X_test))
    return found


def ngboost(data: Problem) -> dict[str, float]:
    """Fit mean and scale by NGBoost with trees of depth 6."""
    from ngboost import NGBRegressor
    from sklearn.tree import DecisionTreeRegressor

    model = NGBRegressor(
        Base=DecisionTreeRegressor(criterion="friedman_mse", max_depth=6),
        n_estimators=data.n_trees,
        learning_rate=data.learning_rate,
        random_state=0,
        verbose=False,
    )
    found = _fit(lambda: model.fit(data.X, data.y))
    normal = model.pred_dist(data.X_test).params
    found["nll"] = float(normal_nll(data.y_test, normal["loc"], normal["scale"] ** 2).mean())
    found["rmse"] = _rmse(data, normal["loc"])
    return found


def softwood(data: Problem, family: str = "SGLBRegressor", **params: Any) -> dict[str, float]:
    """Fit a softwood model on one thread; learning rate and depth are given, so that no setting is chosen."""
    import softwood as sw

    model = getattr(sw, family)(
        n_estimators=data.n_trees,
        max_depth=6,
        learning_rate=data.learning_rate,
        random_state=0,
        n_jobs=1,
        **{"n_members": 1, **params},
    )
    found = _fit(lambda: model.fit(data.X, data.y))

    def moments() -> Any:
        dist = model.predict_dist(data.X_test)
        return dist.mean, dist.data, dist.knowledge

    if params.get("virtual_ensemble"):
        found["predict_virtual"] = min(timed(moments)[1] for _ in range(3))
    dist = model.predict_dist(data.X_test)
    found["nll"] = float(-dist.logpdf(data.y_test).mean())
    found["rmse"] = _rmse(data, dist.mean)
    return found


VIRTUAL: dict[str, Any] = {"virtual_ensemble": True, "n_members": N_VIRTUAL}

MODELS: dict[str, Callable[[Problem], dict[str, float]]] = {
    "catboost": catboost,
    "lightgbm": lightgbm,
    "ngboost": ngboost,
    "sglb": softwood,
    "sglb-virtual": lambda data: softwood(data, **VIRTUAL),
    "sglb-split-noise": lambda data: softwood(data, langevin_noise="split-noise"),
    "sglb-split-noise-virtual": lambda data: softwood(data, langevin_noise="split-noise", **VIRTUAL),
    "sglb-ten": lambda data: softwood(data, n_members=10),
    "sgb-constant-noise": lambda data: softwood(data, "SGBRegressor", noise="constant"),
}


def _fit(fit: Callable[[], Any]) -> dict[str, float]:
    before = reset_peak_memory()
    _, seconds = timed(fit)
    return {"fit": seconds, "memory": peak_memory() - before}


def _rmse(data: Problem, mean: Array) -> float:
    return float(np.sqrt(np.mean((data.y_test - mean) ** 2)))


def main() -> None:
    """Fit and measure the model of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("rows", type=int)
    parser.add_argument("columns", type=int)
    parser.add_argument("trees", type=int)
    parser.add_argument("rate", type=float)
    args = parser.parse_args()
    found = MODELS[args.model](problem(args.rows, args.columns, args.trees, args.rate))
    package = args.model if args.model in ("catboost", "lightgbm", "ngboost") else "softwood"
    print(json.dumps({"version": version(package), "numpy": np.__version__, **found}))


if __name__ == "__main__":
    main()
