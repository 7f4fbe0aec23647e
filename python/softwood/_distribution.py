"""What `predict_dist` returns: the predictive distribution of each row, asked lazily of the native model."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softwood import _frame, _random

if TYPE_CHECKING:
    from softwood._native import Answer

Array = NDArray[np.float64]


class _Distribution:
    """Rows and what both tasks share."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._answer)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_rows={len(self)})"

    def _one_per_row(self, y: NDArray[Any]) -> NDArray[Any]:
        if y.size != 1 and y.shape != (len(self),):
            raise ValueError(f"y has shape {y.shape}: expected one value, or one for each of the {len(self)} rows")
        return np.ascontiguousarray(np.broadcast_to(y.ravel(), (len(self),)))

    @cached_property
    def _uncertainty(self) -> dict[str, Array]:
        return self._answer.uncertainty()

    @property
    def total(self) -> Array:
        """Total uncertainty of each row: variance, or entropy in nats."""
        return self._uncertainty["total"]

    @property
    def data(self) -> Array:
        """The part of `total` that is noise and that no amount of data removes."""
        return self._uncertainty["data"]

    @property
    def knowledge(self) -> Array:
        """The part of `total` that the model has not seen enough to know."""
        return self._uncertainty["knowledge"]


class RegressionDistribution(_Distribution):
    """Predictive distribution of a number on each row: a mixture over the members of a model.

    `total`, `data` and `knowledge` are variances, and `total = data + knowledge`.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import VSTRegressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> model = VSTRegressor(depth=1, n_epochs=5, random_state=0).fit(X, np.sin(6 * X[:, 0]))
    >>> dist = model.predict_dist(X)
    >>> dist.mean.shape, dist.interval(0.9).shape, dist.quantile([0.1, 0.5, 0.9]).shape
    ((40,), (40, 2), (40, 3))
    >>> bool(np.allclose(dist.total, dist.data + dist.knowledge))
    True
    """

    @cached_property
    def _uncertainty(self) -> dict[str, Array]:
        return self._answer.moments()

    @property
    def mean(self) -> Array:
        """Mean of each row."""
        return self._uncertainty["mean"]

    @property
    def std(self) -> Array:
        """Standard deviation of each row."""
        return self._uncertainty["std"]

    def quantile(self, q: ArrayLike) -> Array:
        """Quantiles of each row.

        Parameters
        ----------
        q : float or array-like of shape (n_levels,)
            Levels between 0 and 1.

        Returns
        -------
        ndarray of shape (n_rows,) for one level, (n_rows, n_levels) for several
        """
        levels = np.asarray(q, dtype=np.float64)
        values = self._answer.quantile(np.atleast_1d(levels))
        return values[:, 0] if levels.ndim == 0 else values

    def interval(self, level: float = 0.9) -> Array:
        """Lower and upper end of the central interval that holds `level` of the probability, (n_rows, 2)."""
        return self._answer.interval(level)

    def cdf(self, y: ArrayLike) -> Array:
        """Probability that each row's target is at most `y`; one `y` for all rows or one for each."""
        return self._answer.cdf(self._targets(y))

    def logpdf(self, y: ArrayLike) -> Array:
        """Natural logarithm of each row's density at `y`; one `y` for all rows or one for each."""
        return self._answer.log_density(self._targets(y))

    def pdf(self, y: ArrayLike) -> Array:
        """Density of each row at `y`; one `y` for all rows or one for each."""
        return np.exp(self.logpdf(y))

    def crps(self, y: ArrayLike) -> Array:
        """Continuous ranked probability score of each row at `y`, in the target's units; smaller is better."""
        return self._answer.crps(self._targets(y))

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """Draw `n` independent targets for each row, (n_rows, n)."""
        return self._answer.sample(n, _random.seed_of(random_state))

    def sample_functions(self, n: int = 1, random_state: Any = None) -> Array:
        """Draw `n` whole regression functions from the posterior and evaluate them on the rows, (n_rows, n).

        A column is one function: the same member of the model on every row.
        """
        return self._answer.sample_functions(n, _random.seed_of(random_state))

    def _targets(self, y: ArrayLike) -> Array:
        return self._one_per_row(np.asarray(y, dtype=np.float64))


class ClassificationDistribution(_Distribution):
    """Predictive distribution of a class on each row: a mixture over the members of a model.

    `total`, `data` and `knowledge` are entropies in nats, and `total = data + knowledge`: the entropy of the
    averaged probabilities, the average entropy of the members, and their mutual information.
    """

    def __init__(self, answer: Answer, classes: NDArray[Any]) -> None:
        super().__init__(answer)
        self.classes = classes

    @cached_property
    def probabilities(self) -> Array:
        """Probability of each class, in the order of `classes`, (n_rows, n_classes)."""
        return self._answer.probabilities()

    @property
    def proba(self) -> Array:
        """Another name of `probabilities`."""
        return self.probabilities

    @property
    def entropy(self) -> Array:
        """Another name of `total`."""
        return self.total

    @cached_property
    def label(self) -> NDArray[Any]:
        """Most probable class of each row."""
        return np.asarray(self.classes[self._answer.labels()])

    def sample(self, n: int = 1, random_state: Any = None) -> NDArray[Any]:
        """Draw `n` independent classes for each row, (n_rows, n)."""
        codes = self._answer.sample(n, _random.seed_of(random_state))
        return np.asarray(self.classes[codes.astype(np.intp)])

    def logpmf(self, y: ArrayLike) -> Array:
        """Natural logarithm of each row's probability of class `y`; one class for all rows or one for each."""
        place = {_frame.text(label): at for at, label in enumerate(self.classes)}
        labels = self._one_per_row(np.asarray(y))
        unknown = [label for label in np.unique(labels) if _frame.text(label) not in place]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not a class of the model; it knows {list(place)}")
        columns = np.array([place[_frame.text(label)] for label in labels], dtype=np.intp)
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities[np.arange(len(self)), columns])
