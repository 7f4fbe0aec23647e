"""Tests whether two models differ, from scores on the same folds or the same rows.

The tests are two-sided and take numbers of any kind, such as errors or log-likelihoods. `evaluate` gives the scores of
each fold; a prediction gives one score for each row, as in `dist.logpdf(y)` or `dist.crps(y)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softwood import _native

__all__ = ["SignificanceTest", "diebold_mariano", "f_test_5x2cv", "paired_t_test"]


class SignificanceTest(NamedTuple):
    """Result of a test of two models."""

    statistic: float
    """The test statistic: t, or F for the 5x2 cv test."""
    p_value: float
    """Probability of a statistic at least as extreme if the models do not differ."""
    mean_difference: float
    """Mean of the first model's numbers minus those of the second."""


def paired_t_test(a: ArrayLike, b: ArrayLike) -> SignificanceTest:
    """Test scores of two models on the same folds or rows by the paired t-test.

    Folds of a cross-validation share training rows, so their differences are not independent and the p-value is too
    small.

    Parameters
    ----------
    a, b : array-like of shape (n,)
        Scores of the two models, at least two each.

    Returns
    -------
    SignificanceTest
        `statistic` (t with n - 1 degrees of freedom), `p_value` and `mean_difference`.

    Examples
    --------
    >>> from softwood.significance import paired_t_test
    >>> test = paired_t_test([0.31, 0.28, 0.35, 0.40, 0.29], [0.27, 0.26, 0.33, 0.36, 0.28])
    >>> bool(test.p_value < 0.05)
    True
    """
    return SignificanceTest(*_native.paired_t_test(_numbers(a, "a"), _numbers(b, "b")))


def f_test_5x2cv(errors_a: ArrayLike, errors_b: ArrayLike) -> SignificanceTest:
    """Test errors of two models on the folds of five repeats of 2-fold cross-validation (Alpaydin 1999).

    Parameters
    ----------
    errors_a, errors_b : array-like of shape (10,) or (5, 2)
        Errors of the two models: the two folds of the first repeat, of the second, and so on.

    Returns
    -------
    SignificanceTest
        `statistic` (F with 10 and 5 degrees of freedom), `p_value` and `mean_difference`.
    """
    a, b = _numbers(np.ravel(errors_a), "errors_a"), _numbers(np.ravel(errors_b), "errors_b")
    return SignificanceTest(*_native.f_test_5x2cv(a, b))


def diebold_mariano(a: ArrayLike, b: ArrayLike, h: int = 1) -> SignificanceTest:
    """Test scores per row of two forecasts by the Diebold-Mariano test with the small-sample correction.

    The variance has Newey-West weights up to lag `h - 1`. With `h=1` this is the paired t-test.

    Parameters
    ----------
    a, b : array-like of shape (n,)
        Scores of the two models on each row, in the order of time.
    h : int, default=1
        Number of steps that the forecasts look ahead.

    Returns
    -------
    SignificanceTest
        `statistic` (t with n - 1 degrees of freedom), `p_value` and `mean_difference`.
    """
    if isinstance(h, bool) or not isinstance(h, (int, np.integer)) or h < 1:
        raise ValueError(f"h={h!r}: expected a whole number of steps, at least 1")
    return SignificanceTest(*_native.diebold_mariano(_numbers(a, "a"), _numbers(b, "b"), int(h)))


def _numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions: expected one score for each fold or row")
    return array
