"""The results of `predict_dist`: the predictive distribution of each row, computed by the native model on demand."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softwood import _frame, _random

if TYPE_CHECKING:
    from softwood._native import Distribution

Array = NDArray[np.float64]


class _Distribution:
    """The rows, and what regression and classification share."""

    def __init__(self, native: Distribution) -> None:
        self._native = native

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._native)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_rows={len(self)})"

    def _one_per_row(self, y: NDArray[Any]) -> NDArray[Any]:
        if y.size != 1 and y.shape != (len(self),):
            raise ValueError(f"y has shape {y.shape}: expected one value, or one for each of the {len(self)} rows")
        return np.ascontiguousarray(np.broadcast_to(y.ravel(), (len(self),)))

    @cached_property
    def _uncertainty(self) -> dict[str, Array]:
        return self._native.uncertainty()

    @property
    def total(self) -> Array:
        """Total uncertainty of each row, `data + knowledge`: variance (regression), or entropy in nats."""
        return self._uncertainty["total"]

    @property
    def data(self) -> Array:
        """Data (aleatoric) uncertainty of each row: noise in the target, which more training rows do not reduce."""
        return self._uncertainty["data"]

    @property
    def knowledge(self) -> Array:
        """Knowledge (epistemic) uncertainty of each row: disagreement of the members, which more rows reduce."""
        return self._uncertainty["knowledge"]


class RegressionDistribution(_Distribution):
    """Predictive distribution of a numeric target for each row: a mixture over the members of a model.

    `total`, `data` (aleatoric) and `knowledge` (epistemic) are variances: `data` is the mean of the members' variances,
    `knowledge` the variance of the members' means, and `total = data + knowledge`.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import VSTRegressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> model = VSTRegressor(max_depth=1, n_epochs=5, random_state=0).fit(X, np.sin(6 * X[:, 0]))
    >>> dist = model.predict_dist(X)
    >>> dist.mean.shape, dist.interval(0.9).shape, dist.quantile([0.1, 0.5, 0.9]).shape
    ((40,), (40, 2), (40, 3))
    >>> bool(np.allclose(dist.total, dist.data + dist.knowledge))
    True
    """

    @cached_property
    def _uncertainty(self) -> dict[str, Array]:
        return self._native.moments()

    @property
    def mean(self) -> Array:
        """Predictive mean of each row."""
        return self._uncertainty["mean"]

    @property
    def std(self) -> Array:
        """Predictive standard deviation of each row, the square root of `total`."""
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
        values = self._native.quantile(np.atleast_1d(levels))
        return values[:, 0] if levels.ndim == 0 else values

    def interval(self, level: float = 0.9) -> Array:
        """Central prediction interval with probability `level`: lower and upper end, (n_rows, 2)."""
        return self._native.interval(level)

    def cdf(self, y: ArrayLike) -> Array:
        """Cumulative distribution function of each row at `y`; one `y` for all rows or one for each."""
        return self._native.cdf(self._targets(y))

    def logpdf(self, y: ArrayLike) -> Array:
        """Log density of each row at `y`; one `y` for all rows or one for each."""
        return self._native.log_density(self._targets(y))

    def pdf(self, y: ArrayLike) -> Array:
        """Density of each row at `y`; one `y` for all rows or one for each."""
        return np.exp(self.logpdf(y))

    def crps(self, y: ArrayLike) -> Array:
        """Continuous ranked probability score (CRPS) of each row at `y`, in units of the target; lower is better."""
        return self._native.crps(self._targets(y))

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """Draw `n` independent targets for each row, (n_rows, n)."""
        return self._native.sample(n, _random.seed_of(random_state))

    def sample_functions(self, n: int = 1, random_state: Any = None) -> Array:
        """Draw `n` regression functions and evaluate them on the rows, (n_rows, n).

        A column is one function: the conditional mean of one member of the model on all rows.
        """
        return self._native.sample_functions(n, _random.seed_of(random_state))

    def _targets(self, y: ArrayLike) -> Array:
        return self._one_per_row(np.asarray(y, dtype=np.float64))


class ClassificationDistribution(_Distribution):
    """Predictive distribution of a class for each row: a mixture over the members of a model.

    `total`, `data` (aleatoric) and `knowledge` (epistemic) are in nats: `total` is the entropy of the averaged
    probabilities, `data` the mean entropy of the members, and `knowledge = total - data` their mutual information.
    """

    def __init__(self, native: Distribution, classes: NDArray[Any]) -> None:
        super().__init__(native)
        self.classes = classes

    @cached_property
    def probabilities(self) -> Array:
        """Probability of each class, in the order of `classes`, (n_rows, n_classes)."""
        return self._native.probabilities()

    @property
    def proba(self) -> Array:
        """Alias of `probabilities`."""
        return self.probabilities

    @property
    def entropy(self) -> Array:
        """Alias of `total`."""
        return self.total

    @cached_property
    def label(self) -> NDArray[Any]:
        """Most probable class of each row."""
        return np.asarray(self.classes[self._native.labels()])

    def sample(self, n: int = 1, random_state: Any = None) -> NDArray[Any]:
        """Draw `n` independent classes for each row, (n_rows, n)."""
        codes = self._native.sample(n, _random.seed_of(random_state))
        return np.asarray(self.classes[codes.astype(np.intp)])

    def logpmf(self, y: ArrayLike) -> Array:
        """Log probability of class `y` for each row; one class for all rows or one for each."""
        column_of = {_frame.text(label): column for column, label in enumerate(self.classes)}
        labels = self._one_per_row(np.asarray(y))
        unknown = [label for label in np.unique(labels) if _frame.text(label) not in column_of]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not a class of the model; the classes are {list(column_of)}")
        columns = np.array([column_of[_frame.text(label)] for label in labels], dtype=np.intp)
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities[np.arange(len(self)), columns])
