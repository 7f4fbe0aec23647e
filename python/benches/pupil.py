"""One model on one split of one public table, in this process: prints one JSON object.

Run by `benches.quality` with the interpreter of the model's own environment.
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

from benches.contestant import mixture_nll
from benches.measure import timed
from benches.tables import REGRESSION, Split, split

Array = NDArray[np.float64]
LEAST_PROBABILITY = 1e-10
"""Added to probabilities before their logarithm, as in the published figures."""


def softwood(data: Split, is_regression: bool, seed: int) -> dict[str, Any]:
    """Ours with default parameters: ten members, settings chosen on a part of the training rows."""
    import softwood as ours

    kind: Any = ours.SGLBRegressor if is_regression else ours.SGLBClassifier
    model = kind(random_state=seed, n_jobs=1)
    _, seconds = timed(lambda: model.fit(data.X, data.y))
    answer, foreign = model.predict_dist(data.X_test), model.predict_dist(data.X_foreign)
    found = {"fit": seconds, "chosen": model.training_["chosen"]}
    if is_regression:
        found["nll"] = float(-answer.logpdf(data.y_test).mean())
        found["rmse"] = float(np.sqrt(np.mean((answer.mean - data.y_test) ** 2)))
    else:
        found |= _class_scores(answer.probabilities, data.y_test)
    for name in ("knowledge", "total"):
        found[f"auroc_{name}"] = _auroc(getattr(answer, name), getattr(foreign, name))
    return found


def catboost(data: Split, is_regression: bool, seed: int, n_seeds: int, *, stops: bool) -> dict[str, Any]:
    """CatBoost's Langevin boosting with its defaults: an ensemble, and the virtual members of the first.

    It has 1000 trees or, if it `stops`, as many as were best on the last fifth of the training rows.
    """
    import catboost as cb

    data = _without_gaps(data)
    kind = cb.CatBoostRegressor if is_regression else cb.CatBoostClassifier
    loss = "RMSEWithUncertainty" if is_regression else "Logloss"

    def model(at: int, n_trees: int) -> Any:
        return kind(
            loss_function=loss,
            posterior_sampling=True,
            iterations=n_trees,
            random_seed=seed * n_seeds + at,
            cat_features=data.categories,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
        )

    def best_number() -> int:
        n_kept = len(data.y) * 4 // 5
        held_out = (data.X[n_kept:], data.y[n_kept:])
        trial = model(0, 1000).fit(data.X[:n_kept], data.y[:n_kept], eval_set=held_out, use_best_model=True)
        return max(int(trial.tree_count_), 20)

    def fit() -> list[Any]:
        n_trees = best_number() if stops else 1000
        return [model(at, n_trees).fit(data.X, data.y) for at in range(n_seeds)]

    models, seconds = timed(fit)
    found: dict[str, Any] = {"fit": seconds, "n_members": n_seeds, "n_trees": models[0].tree_count_}
    learner = _regression_members if is_regression else _class_members
    found |= learner(models, data)
    virtual = learner([_Virtual(models[0])], data)
    return found | {f"virtual_{name}": value for name, value in virtual.items()}


class _Virtual:
    """A model whose members are its truncated sub-models."""

    def __init__(self, model: Any) -> None:
        self.model = model


def _raw_members(models: list[Any], X: Any, prediction_type: str) -> Array:
    """Predictions of every member, members first."""
    if isinstance(models[0], _Virtual):
        raw = models[0].model.virtual_ensembles_predict(
            X, prediction_type="VirtEnsembles", virtual_ensembles_count=10, thread_count=1
        )
        return np.moveaxis(np.asarray(raw), 1, 0)
    return np.stack([model.predict(X, prediction_type=prediction_type, thread_count=1) for model in models])


def _regression_members(models: list[Any], data: Split) -> dict[str, float]:
    def uncertainty(X: Any) -> tuple[Array, Array, Array]:
        raw = _raw_members(models, X, "RMSEWithUncertainty")
        mean, variance = raw[:, :, 0], raw[:, :, 1]
        return raw, mean.var(axis=0), mean.var(axis=0) + variance.mean(axis=0)

    raw, knowledge, total = uncertainty(data.X_test)
    _, foreign_knowledge, foreign_total = uncertainty(data.X_foreign)
    mean = raw[:, :, 0]
    return {
        "nll": mixture_nll(data.y_test, mean, raw[:, :, 1] + 1e-8),
        "rmse": float(np.sqrt(np.mean((mean.mean(axis=0) - data.y_test) ** 2))),
        "auroc_knowledge": _auroc(knowledge, foreign_knowledge),
        "auroc_total": _auroc(total, foreign_total),
    }


def _class_members(models: list[Any], data: Split) -> dict[str, float]:
    def members(X: Any) -> Array:
        raw = _raw_members(models, X, "RawFormulaVal")
        positive = 1 / (1 + np.exp(-raw.reshape(len(raw), len(X))))
        return np.stack([1 - positive, positive], axis=2)

    def uncertainty(p: Array) -> tuple[Array, Array]:
        def entropy(p: Array) -> Array:
            total: Array = -np.sum(p * np.log(p + LEAST_PROBABILITY), axis=-1)
            return total

        total = entropy(p.mean(axis=0))
        return total - entropy(p).mean(axis=0), total

    inside, outside = members(data.X_test), members(data.X_foreign)
    (knowledge, total), (foreign_knowledge, foreign_total) = uncertainty(inside), uncertainty(outside)
    return _class_scores(inside.mean(axis=0), data.y_test) | {
        "auroc_knowledge": _auroc(knowledge, foreign_knowledge),
        "auroc_total": _auroc(total, foreign_total),
    }


def _class_scores(probabilities: Array, y: NDArray[Any]) -> dict[str, float]:
    of_label = probabilities[np.arange(len(y)), y.astype(int)]
    return {
        "nll": float(-np.mean(np.log(of_label + LEAST_PROBABILITY))),
        "error": float(np.mean(probabilities.argmax(axis=1) != y)),
    }


def _auroc(inside: Array, outside: Array) -> float:
    labels = np.repeat([0, 1], [len(inside), len(outside)])
    return float(roc_auc_score(labels, np.concatenate([inside, outside])))


def _without_gaps(data: Split) -> Split:
    """CatBoost takes no missing cell in a column of categories."""

    def filled(X: Any) -> Any:
        return X.assign(**{name: X[name].astype(object).fillna("missing").astype(str) for name in data.categories})

    return Split(filled(data.X), data.y, filled(data.X_test), data.y_test, filled(data.X_foreign))


def main() -> None:
    """Fit and score what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=["softwood", "catboost", "catboost-stopped"])
    parser.add_argument("table")
    parser.add_argument("split", type=int)
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()
    data, is_regression = split(args.table, args.split), args.table in REGRESSION
    acts: dict[str, Callable[[], dict[str, Any]]] = {
        "softwood": lambda: softwood(data, is_regression, args.split),
        "catboost": lambda: catboost(data, is_regression, args.split, args.seeds, stops=False),
        "catboost-stopped": lambda: catboost(data, is_regression, args.split, args.seeds, stops=True),
    }
    print(json.dumps({"version": version(args.model.split("-")[0]), **acts[args.model]()}))


if __name__ == "__main__":
    main()
