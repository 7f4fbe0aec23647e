"""Active learning and experimental design with any fitted estimator.

`select_rows` chooses the rows of a pool whose labels would teach the model most. `suggest` chooses which candidate to
try next, to find one with a large or small target in few trials (Bayesian optimisation).
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from softwood import _frame, _labels, _native, _numbers, _random
from softwood._arguments import RowSelectionRun, SuggestionRun
from softwood._base import Estimator

__all__ = ["RowSelection", "Suggestions", "select_rows", "suggest"]

Array = NDArray[np.float64]

MAX_COUNT = 2**32
"""Number of rows from which on no table has so many."""


@dataclass(frozen=True)
class RowSelection:
    """Rows to label next, in the order of the choice."""

    rows: NDArray[np.int64]
    """Indices of the rows in the pool."""
    scores: Array
    """Why each row was chosen.

    `"information"`: what its label adds to the labels of the rows before it, in nats. `"variance"`: its knowledge
    uncertainty, a variance (regression) or in nats (classification). `"variance_reduction"`: by how much its label
    lowers the mean knowledge uncertainty of the pool, after those of the rows before it. `"random"`: zero.
    """


@dataclass(frozen=True)
class Suggestions:
    """Candidates to try next, in the order of the choice."""

    rows: NDArray[np.int64]
    """Indices of the candidates."""
    mean: Array
    """Predicted mean of the target, or of the probability of the class."""
    knowledge_sd: Array
    """Knowledge (epistemic) uncertainty of that mean, as a standard deviation."""


def select_rows(
    model: Estimator, X_pool: Any, n: int, criterion: str = "information", random_state: Any = 0
) -> RowSelection:
    """Choose the unlabelled rows whose labels would improve the model most (active learning).

    Parameters
    ----------
    model : fitted estimator
        A regressor or classifier of any family with at least two members.
    X_pool : array-like, pandas, polars or pyarrow table of shape (n_pool, n_features)
        Rows without labels. Leave out the rows that the model was trained on.
    n : int
        Number of rows to choose.
    criterion : {"information", "variance_reduction", "variance", "random"}, default="information"
        - `"information"`: the batch whose labels together have the largest mutual information with the model, under a
          Normal approximation, chosen greedily: rows that are uncertain for lack of knowledge rather than for noise,
          and that differ from each other;
        - `"variance_reduction"`: the batch whose labels lower the mean knowledge uncertainty of the whole pool most,
          chosen greedily in the same way: rows that tell about many others. The pool should be like the rows that
          will be predicted;
        - `"variance"`: the rows with the largest knowledge uncertainty, without rows on which the members of the model
          deviate almost as they do on a chosen row;
        - `"random"`: a random sample, for comparison.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the random sample, of the choice between equal scores, and of the candidates of a large pool.

    Returns
    -------
    RowSelection
        `rows` (indices into the pool) and `scores`.

    Notes
    -----
    Equal rows are chosen once before any of them is chosen again. A batch is chosen among at most 2000 candidates (or
    four times `n`): of a larger pool, half of them are the rows with the largest scores, and half are drawn with
    probabilities in proportion to the scores. Models of more than 256 members are represented by 256 of them.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import GPRegressor
    >>> from softwood.design import select_rows
    >>> X = np.concatenate([np.linspace(0, 1, 20), np.linspace(2, 3, 20)])[:, None]
    >>> model = GPRegressor(random_state=0).fit(X, np.sin(3 * X[:, 0]))
    >>> pool = np.linspace(0, 3, 61)[:, None]
    >>> found = select_rows(model, pool, 2)
    >>> bool(1.2 < pool[found.rows[0], 0] < 1.8)
    True
    """
    _check_fitted(model)
    run = RowSelectionRun(
        n=_count(n),
        criterion=_text(criterion, "criterion"),
        seed=_random.seed_of(random_state),
        n_threads=model._n_threads(),
    )
    return RowSelection(**_native.select_rows(model._model, model._table(X_pool), run))


def suggest(
    model: Estimator,
    X_candidates: Any,
    n: int = 1,
    *,
    maximize: bool = True,
    criterion: str = "thompson",
    exclude: ArrayLike | None = None,
    best: float | None = None,
    label: Any = None,
    random_state: Any = 0,
) -> Suggestions:
    """Suggest which candidates to try next, to find one with a large or small target in few trials.

    Try a suggestion, fit the model again with its result, and ask again.

    Parameters
    ----------
    model : fitted estimator
    X_candidates : array-like, pandas, polars or pyarrow table of shape (n_candidates, n_features)
        Everything that could be tried.
    n : int, default=1
        Number of candidates to choose.
    maximize : bool, default=True
        Whether a large target is good; False: a small one.
    criterion : {"thompson", "expected_improvement"}, default="thompson"
        - `"thompson"`: the best candidate of a random member of the model (Thompson sampling); each candidate of a
          batch comes from another member until all members have chosen;
        - `"expected_improvement"`: the largest expected improvement on the best value so far. Each candidate of a
          batch counts for what it adds to those before it.
    exclude : array-like, default=None
        Candidates that are not to be chosen, such as those that were tried: row indices, or a mask of shape
        (n_candidates,).
    best : float, default=None
        Best value so far, for `"expected_improvement"`. Without it, the best predicted mean of the excluded candidates
        is used, which noise affects less than the best observed value.
    label : default=None
        For classifiers, the class whose probability is to be large (or small).
    random_state : int, RandomState, Generator or None, default=0
        Seed. Give another one at every step of a search with Thompson sampling.

    Returns
    -------
    Suggestions
        `rows` (indices into the candidates), the predicted `mean` and its `knowledge_sd`.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import GPRegressor
    >>> from softwood.design import suggest
    >>> candidates = np.linspace(0, 1, 101)[:, None]
    >>> tried = [0, 10, 35, 60, 80, 100]
    >>> model = GPRegressor(random_state=0).fit(candidates[tried], -(candidates[tried, 0] - 0.4) ** 2)
    >>> found = suggest(model, candidates, exclude=tried)
    >>> bool(abs(candidates[found.rows[0], 0] - 0.4) < 0.1)
    True
    """
    _check_fitted(model)
    table = model._table(X_candidates)
    run = SuggestionRun(
        n=_count(n),
        maximize=bool(maximize),
        criterion=_text(criterion, "criterion"),
        excluded=_mask(exclude, len(_frame.first_values(table))),
        best=None if best is None else _numbers.number(best, "best"),
        class_index=_class_index(model, label),
        seed=_random.seed_of(random_state),
        n_threads=model._n_threads(),
    )
    return Suggestions(**_native.suggest(model._model, table, run))


def _check_fitted(model: Any) -> None:
    if not isinstance(model, Estimator):
        raise TypeError(f"model is a {type(model).__name__}: expected a fitted estimator of softwood")
    check_is_fitted(model)


def _count(n: Any) -> int:
    if not isinstance(n, numbers.Integral):
        raise TypeError(f"n is a {type(n).__name__}: expected a whole number")
    count = int(n)
    if not 0 <= count < MAX_COUNT:
        raise ValueError(f"n = {n}: expected a whole number from 1 to the number of rows")
    return count


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is a {type(value).__name__}: expected a text")
    return value


def _mask(exclude: Any, n_rows: int) -> list[bool]:
    """Return a mask from a mask or row indices; an empty list if nothing is excluded."""
    if exclude is None:
        return []
    rows = np.asarray(exclude)
    problem = f"exclude: expected row indices from 0 to {n_rows - 1}, or a mask of {n_rows} entries"
    if rows.dtype.kind == "b":
        if rows.shape != (n_rows,):
            raise ValueError(f"{problem}; found a mask of shape {rows.shape}")
        mask = rows
    else:
        are_indices = rows.ndim == 1 and (rows.size == 0 or rows.dtype.kind in "iu")
        if not are_indices or rows.min(initial=0) < 0 or rows.max(initial=0) >= n_rows:
            raise ValueError(problem)
        mask = np.zeros(n_rows, dtype=np.bool_)
        mask[rows.astype(np.int64)] = True
    found: list[bool] = mask.tolist()
    return found


def _class_index(model: Any, label: Any) -> int | None:
    """Return the index of a class of a classifier; None if no class is given."""
    classes = getattr(model, "classes_", None)
    if label is None:
        if classes is not None:
            raise ValueError(f"label: expected the class whose probability is the target, one of {list(classes)}")
        return None
    if classes is None:
        raise ValueError("label is given, but the model is a regressor: leave it out")
    texts = [_labels.text(known) for known in classes]
    (name,) = _labels.names_as_in(classes, np.array([label], dtype=object), "label")
    if name not in texts:
        raise ValueError(f"label = {label!r} is not a class of the model; the classes are {texts}")
    return texts.index(name)
