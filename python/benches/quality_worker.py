"""Scores one model on one split of one public table in this process and prints one JSON object.

`benches.quality` runs it with the interpreter of the environment that has the library of the model.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benches.measure import timed
from benches.speed_worker import mixture_nll
from benches.tables import REGRESSION, Split, split

Array = NDArray[np.float64]
MIN_PROBABILITY = 1e-10
"""Added to probabilities before the logarithm, as in the published figures."""


def softwood(data: Split, is_regression: bool, seed: int) -> dict[str, Any]:
    """Fit `sglb` with default parameters: ten members; settings are chosen on held-out training rows."""
    import softwood as sw

    estimator: Any = sw.SGLBRegressor if is_regression else sw.SGLBClassifier
    model = estimator(random_state=seed, n_jobs=1)
    _, seconds = timed(lambda: model.fit(data.X, data.y))
    dist, ood = model.predict_dist(data.X_test), model.predict_dist(data.X_ood)
    found = {"fit": seconds, "chosen": model.training_["chosen"]}
    if is_regression:
        found["nll"] = float(-dist.logpdf(data.y_test).mean())
        found["rmse"] = float(np.sqrt(np.mean((dist.mean - data.y_test) ** 2)))
    else:
        found |= _class_scores(dist.probabilities, data.y_test)
    for name in ("knowledge", "total"):
        found[f"auroc_{name}"] = _auroc(getattr(dist, name), getattr(ood, name))
    return found


def catboost(data: Split, is_regression: bool, seed: int, n_seeds: int, *, stops: bool) -> dict[str, Any]:
    """Fit an ensemble by CatBoost's Langevin boosting with default parameters; score it and its virtual ensemble.

    The number of trees is 1000 or, if `stops`, the best number on the last fifth of the training rows. The virtual
    ensemble consists of truncated sub-models of the first model.
    """
    import catboost as cb

    data = _fill_categories(data)
    estimator = cb.CatBoostRegressor if is_regression else cb.CatBoostClassifier
    loss = "RMSEWithUncertainty" if is_regression else "Logloss"

    def model(member: int, n_trees: int) -> Any:
        return estimator(
            loss_function=loss,
            posterior_sampling=True,
            iterations=n_trees,
            random_seed=seed * n_seeds + member,
            cat_features=data.categories,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
        )

    def best_n_trees() -> int:
        n_train = len(data.y) * 4 // 5
        validation = (data.X[n_train:], data.y[n_train:])
        trial = model(0, 1000).fit(data.X[:n_train], data.y[:n_train], eval_set=validation, use_best_model=True)
        return max(int(trial.tree_count_), 20)

    def fit() -> list[Any]:
        n_trees = best_n_trees() if stops else 1000
        return [model(member, n_trees).fit(data.X, data.y) for member in range(n_seeds)]

    models, seconds = timed(fit)
    found: dict[str, Any] = {"fit": seconds, "n_members": n_seeds, "n_trees": models[0].tree_count_}
    score = _regression_scores if is_regression else _classification_scores
    found |= score(models, data)
    virtual = score([_VirtualEnsemble(models[0])], data)
    return found | {f"virtual_{name}": value for name, value in virtual.items()}


class _VirtualEnsemble:
    """Truncated sub-models of one model as members."""

    def __init__(self, model: Any) -> None:
        self.model = model


def _raw_members(models: list[Any], X: Any, prediction_type: str) -> Array:
    """Return the predictions of every member, (n_members, n_rows, n_outputs)."""
    if isinstance(models[0], _VirtualEnsemble):
        raw = models[0].model.virtual_ensembles_predict(
            X, prediction_type="VirtEnsembles", virtual_ensembles_count=10, thread_count=1
        )
        return np.moveaxis(np.asarray(raw), 1, 0)
    return np.stack([model.predict(X, prediction_type=prediction_type, thread_count=1) for model in models])


def _regression_scores(models: list[Any], data: Split) -> dict[str, float]:
    def uncertainty(X: Any) -> tuple[Array, Array, Array]:
        raw = _raw_members(models, X, "RMSEWithUncertainty")
        mean, variance = raw[:, :, 0], raw[:, :, 1]
        return raw, mean.var(axis=0), mean.var(axis=0) + variance.mean(axis=0)

    raw, knowledge, total = uncertainty(data.X_test)
    _, ood_knowledge, ood_total = uncertainty(data.X_ood)
    mean = raw[:, :, 0]
    return {
        "nll": mixture_nll(data.y_test, mean, raw[:, :, 1] + 1e-8),
        "rmse": float(np.sqrt(np.mean((mean.mean(axis=0) - data.y_test) ** 2))),
        "auroc_knowledge": _auroc(knowledge, ood_knowledge),
        "auroc_total": _auroc(total, ood_total),
    }


def _classification_scores(models: list[Any], data: Split) -> dict[str, float]:
    def members(X: Any) -> Array:
        raw = _raw_members(models, X, "RawFormulaVal")
        positive = 1 / (1 + np.exp(-raw.reshape(len(raw), len(X))))
        return np.stack([1 - positive, positive], axis=2)

    def uncertainty(p: Array) -> tuple[Array, Array]:
        def entropy(p: Array) -> Array:
            total: Array = -np.sum(p * np.log(p + MIN_PROBABILITY), axis=-1)
            return total

        total = entropy(p.mean(axis=0))
        return total - entropy(p).mean(axis=0), total

    inside, outside = members(data.X_test), members(data.X_ood)
    (knowledge, total), (ood_knowledge, ood_total) = uncertainty(inside), uncertainty(outside)
    return _class_scores(inside.mean(axis=0), data.y_test) | {
        "auroc_knowledge": _auroc(knowledge, ood_knowledge),
        "auroc_total": _auroc(total, ood_total),
    }


def _class_scores(probabilities: Array, y: NDArray[Any]) -> dict[str, float]:
    probability = probabilities[np.arange(len(y)), y.astype(int)]
    return {
        "nll": float(-np.mean(np.log(probability + MIN_PROBABILITY))),
        "error": float(np.mean(probabilities.argmax(axis=1) != y)),
    }


def _auroc(inside: Array, outside: Array) -> float:
    labels = np.repeat([0, 1], [len(inside), len(outside)])
    return float(roc_auc_score(labels, np.concatenate([inside, outside])))


def _fill_categories(data: Split) -> Split:
    """Replace missing categories by a category of their own; CatBoost accepts no missing categories."""

    def filled(X: Any) -> Any:
        return X.assign(**{name: X[name].astype(object).fillna("missing").astype(str) for name in data.categories})

    return Split(filled(data.X), data.y, filled(data.X_test), data.y_test, filled(data.X_ood))


def main() -> None:
    """Fit and score the model of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=["softwood", "catboost", "catboost-stopped"])
    parser.add_argument("table")
    parser.add_argument("split", type=int)
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()
    data, is_regression = split(args.table, args.split), args.table in REGRESSION
    models: dict[str, Callable[[], dict[str, Any]]] = {
        "softwood": lambda: softwood(data, is_regression, args.split),
        "catboost": lambda: catboost(data, is_regression, args.split, args.seeds, stops=False),
        "catboost-stopped": lambda: catboost(data, is_regression, args.split, args.seeds, stops=True),
    }
    print(json.dumps({"version": version(args.model.split("-")[0]), **models[args.model]()}))


if __name__ == "__main__":
    main()
