"""Scores of fitted models on labelled rows, and of estimators by a protocol such as cross-validation."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from softwood import _frame, _native, _random
from softwood._arguments import EvaluationRun
from softwood._base import Estimator
from softwood._threads import n_threads

Splits = list[tuple[list[int], list[int], list[int]]]


def score(model: Estimator, X: Any, y: ArrayLike) -> dict[str, float]:
    """Score the predictive distributions of a fitted model on labelled rows.

    Parameters
    ----------
    model : fitted estimator
    X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
        Rows that the model was not trained on.
    y : array-like of shape (n_samples,)
        Their targets.

    Returns
    -------
    dict
        The scores that `softwood score` prints.

        - Regression: `log_likelihood` (mean natural logarithm of the density), `rmse` (of the mean), both also in
          units of the standard deviation of the training target (`..._std`), `mae` (of the median, which minimises
          it), `crps`, `coverage_50`, `coverage_90`, `coverage_95`
          (fraction of targets inside the central interval), `calibration_error` (mean absolute difference between the
          probability of central intervals and their coverage, over the levels 0.05, 0.10, ..., 0.95), `sharpness_90`
          (mean width of the central 90% interval).
        - Classification: `nll` (mean negative log-likelihood, the log loss), `brier` (squared deviations of the
          probabilities, summed over the classes: 0 to 2), `error` (misclassification rate), `auc`, `ece` (expected
          calibration error).
        - Both: `prr_total`, `prr_knowledge` (prediction rejection ratio: how well uncertainty ranks errors; 1 is
          perfect, 0 is random).

        A score that is undefined on these rows is absent.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import SGLBRegressor, score
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = SGLBRegressor(n_estimators=50, n_members=2, max_depth=2, learning_rate=0.2, random_state=0)
    >>> score(model.fit(X[::2], y[::2]), X[1::2], y[1::2])["rmse"] < 0.1
    True
    """
    _check_estimator(model)
    check_is_fitted(model)
    target = model._target(y, "y", reset=False)
    scores: dict[str, float] = json.loads(model._model.score(model._table(X), target, model._n_threads()))
    return scores


def evaluate(
    models: Estimator | Iterable[Estimator],
    X: Any,
    y: ArrayLike,
    protocol: Any = "cv:5",
    *,
    sample_weight: ArrayLike | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """Fit and score estimators by a protocol, such as cross-validation.

    Parameters
    ----------
    models : estimator or list of estimators
        Regressors, or classifiers. They are not changed, and need not be fitted; their `random_state`, `n_jobs` and
        `verbose` are not used.
    X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
        Features.
    y : array-like of shape (n_samples,)
        Targets.
    protocol : str, scikit-learn splitter or iterable, default="cv:5"
        - `"holdout:F"`: a fraction F of the rows is the test set;
        - `"cv:K"`: K-fold cross-validation;
        - `"paper:F,K"`: a fraction F of the rows is the test set of K folds, each of which holds out another part of
          the other rows as validation set;
        - a splitter of scikit-learn, such as `StratifiedKFold(5)`;
        - pairs of row indices (train, test), or triples (train, validation, test).
    sample_weight : array-like of shape (n_samples,), default=None
        Row weights for the fits; the scores do not use them.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds and fits. An integer equals `--seed` of the command line.
    n_jobs : int or None, default=None
        Number of threads, as in the estimators. Folds run in parallel.

    Returns
    -------
    dict
        The report of `softwood evaluate --json`: `protocol`, `n_rows`, `seed`, and `models`, a list of dicts with
        `model` (family), `params`, `folds` (scores, times and memory of each fold), and `mean` and `sd` over the folds
        of everything that `score` returns, `fit_seconds`, `predict_seconds`, `peak_rss_bytes` and, for models that are
        a single tree, `n_nodes`.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import SGLBRegressor, TreeRegressor, evaluate
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> boosted = SGLBRegressor(n_estimators=50, n_members=2, max_depth=2, learning_rate=0.2)
    >>> report = evaluate([boosted, TreeRegressor()], X, y, "cv:3")
    >>> [(part["model"], len(part["folds"])) for part in report["models"]]
    [('sglb', 3), ('tree', 3)]
    >>> report["models"][0]["mean"]["rmse"] < 0.1
    True
    """
    compared = _estimators(models)
    for model in compared:
        model._warn_of_former_names(stacklevel=3)
    data = clone(compared[0])._training_set(X, y, sample_weight)
    is_text = isinstance(protocol, str)
    if is_text and not _frame.is_encodable(protocol):
        raise ValueError(f"protocol {protocol!r} cannot be encoded in UTF-8: expected a text such as 'cv:5'")
    if is_text and protocol.startswith("splits:"):
        raise ValueError(f"protocol {protocol!r} reads a file: give the row indices of each fold instead")
    run = EvaluationRun(
        models=[(model._family, model._params_json()) for model in compared],
        protocol=protocol if is_text else _name(protocol),
        splits=None if is_text else _splits(protocol, len(_frame.first_values(data.features)), y),
        seed=_random.seed_of(random_state),
        n_threads=n_threads(n_jobs),
    )
    report: dict[str, Any] = json.loads(_native.evaluate(data, run))
    return report


def _estimators(models: Any) -> list[Estimator]:
    compared = [models] if isinstance(models, Estimator) or not isinstance(models, Iterable) else list(models)
    if not compared:
        raise ValueError("models is empty: expected an estimator or a list of estimators")
    for model in compared:
        _check_estimator(model)
    tasks = sorted({model._task for model in compared})
    if len(tasks) > 1:
        raise ValueError("models has regressors and classifiers: give estimators of one task")
    return compared


def _check_estimator(model: Any) -> None:
    if not isinstance(model, Estimator):
        raise TypeError(f"model is a {type(model).__name__}: expected an estimator of softwood")


def _name(protocol: Any) -> str:
    return repr(protocol) if hasattr(protocol, "split") else "splits"


def _splits(protocol: Any, n_rows: int, y: Any) -> Splits:
    """Return the training, validation and test rows of each fold."""
    if hasattr(protocol, "split"):
        folds = protocol.split(np.zeros((n_rows, 1)), y)
    elif isinstance(protocol, Iterable):
        folds = protocol
    else:
        raise TypeError(
            f"protocol is a {type(protocol).__name__}: "
            "expected a text such as 'cv:5', a splitter of scikit-learn, or pairs of row indices"
        )
    return [_split(fold, parts, n_rows) for fold, parts in enumerate(folds)]


def _split(fold: int, parts: Any, n_rows: int) -> tuple[list[int], list[int], list[int]]:
    rows = [_rows(fold, part, n_rows) for part in parts]
    if len(rows) not in {2, 3}:
        raise ValueError(f"fold {fold} has {len(rows)} parts: expected (train, test) or (train, validation, test)")
    return rows[0], rows[1] if len(rows) == 3 else [], rows[-1]


def _rows(fold: int, part: Any, n_rows: int) -> list[int]:
    """Return row indices from indices or a mask."""
    rows = np.asarray(part)
    if rows.dtype.kind == "b" and rows.shape == (n_rows,):
        rows = np.flatnonzero(rows)
    are_rows = rows.dtype.kind in "iu" and rows.min(initial=0) >= 0 and rows.max(initial=0) <= np.iinfo(np.int64).max
    is_valid = rows.ndim == 1 and (rows.size == 0 or are_rows)
    if not is_valid:
        raise ValueError(f"fold {fold}: expected whole numbers from 0 to {n_rows - 1} as row indices, or a mask")
    indices: list[int] = rows.astype(np.int64).tolist()
    return indices
