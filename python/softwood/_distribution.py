"""The results of `predict_dist`: the predictive distribution of each row, computed by the native model on demand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softwood import _labels, _numbers, _random

if TYPE_CHECKING:
    from typing_extensions import Self

    from softwood._native import Distribution

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Contrast:
    """The difference of two predictions of one model for paired rows.

    Every member of the model is evaluated on both rows of a pair, so that the differences of the members show how
    certain the model is of the difference. For a regression they are differences of conditional means, for a
    classification differences of the probability of each class, with one more axis for the classes.
    """

    mean: Array
    """Mean over the members, (n_rows,) or (n_rows, n_classes)."""
    std: Array
    """Standard deviation over the members: knowledge (epistemic) uncertainty of the difference; shaped like `mean`."""
    quantiles: Array
    """Quantiles over the members, (n_rows, n_levels) or (n_rows, n_classes, n_levels)."""
    levels: Array
    """Levels of the quantiles, (n_levels,)."""
    member_means: Array
    """Mean over the rows for each member, (n_members,) or (n_members, n_classes): samples of the average difference."""


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

    def _outputs_shape(self) -> tuple[int, ...]:
        """Return the shape of what a member predicts for a row."""
        raise NotImplementedError

    @cached_property
    def members(self) -> Array:
        """Predictions of all members of the model.

        Conditional means, (n_rows, n_members), or class probabilities, (n_rows, n_members, n_classes). A member is one
        function for all rows. The array is kept in memory with the distribution.
        """
        return self._by_member(self._native.members())

    def sample_functions(self, n: int = 1, random_state: Any = None) -> Array:
        """Draw `n` members of the model and evaluate them on the rows.

        Parameters
        ----------
        n : int, default=1
            Number of draws.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws.

        Returns
        -------
        ndarray of shape (n_rows, n) or (n_rows, n, n_classes)
            Conditional means, or class probabilities. Column `i` is one function on all rows.
        """
        return self._by_member(self._native.sample_functions(n, _random.seed_of(random_state)))

    def contrast(self, other: Self, levels: ArrayLike = (0.05, 0.95)) -> Contrast:
        """Subtract another prediction of the same model, row by row and member by member.

        Parameters
        ----------
        other : distribution
            The prediction to subtract: of the same model, for as many rows.
        levels : array-like of shape (n_levels,), default=(0.05, 0.95)
            Levels of the quantiles over the members, between 0 and 1.

        Returns
        -------
        Contrast
            Mean, standard deviation and quantiles over the members for each row, and the mean over the rows for each
            member.

        Examples
        --------
        The effect of raising the first column by one, with its uncertainty:

        >>> import numpy as np
        >>> from softwood import SGLBRegressor
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> model = SGLBRegressor(n_estimators=50, n_members=4, max_depth=2, learning_rate=0.2, random_state=0)
        >>> model = model.fit(X, 3 * X[:, 0])
        >>> effect = model.predict_dist(X + [1, 0]).contrast(model.predict_dist(X))
        >>> effect.mean.shape, effect.quantiles.shape, effect.member_means.shape
        ((200,), (200, 2), (4,))
        """
        if not isinstance(other, type(self)):
            raise TypeError(f"other is a {type(other).__name__}: expected a {type(self).__name__} of the same model")
        at = np.atleast_1d(_numbers.array(levels, "levels"))
        found = self._native.contrast(other._native, at)
        outputs = self._outputs_shape()
        return Contrast(
            mean=found["mean"].reshape(-1, *outputs),
            std=found["std"].reshape(-1, *outputs),
            quantiles=found["quantiles"].reshape(len(self), *outputs, at.size),
            levels=at,
            member_means=found["member_means"].reshape(-1, *outputs),
        )

    def _by_member(self, values: Array) -> Array:
        outputs = self._outputs_shape()
        n_members = values.shape[1] // math.prod(outputs)
        return values.reshape(len(self), n_members, *outputs)

    @cached_property
    def _summary(self) -> dict[str, Any]:
        """Uncertainties, and what the native module computes in the same pass."""
        raise NotImplementedError

    @property
    def total(self) -> Array:
        """Total uncertainty of each row, `data + knowledge`: variance (regression), or entropy in nats."""
        return np.asarray(self._summary["total"])

    @property
    def data(self) -> Array:
        """Data (aleatoric) uncertainty of each row: noise in the target, which more training rows do not reduce."""
        return np.asarray(self._summary["data"])

    @property
    def knowledge(self) -> Array:
        """Knowledge (epistemic) uncertainty of each row: disagreement of the members, which more rows reduce."""
        return np.asarray(self._summary["knowledge"])


class RegressionDistribution(_Distribution):
    """Predictive distribution of a numeric target for each row: a mixture over the members of a model.

    `total`, `data` (aleatoric) and `knowledge` (epistemic) are variances: `data` is that of the noise, `knowledge` that
    of the members as functions (`members`), and `total = data + knowledge`.

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

    def _outputs_shape(self) -> tuple[int, ...]:
        return ()

    @cached_property
    def _summary(self) -> dict[str, Any]:
        return self._native.moments()

    @property
    def mean(self) -> Array:
        """Predictive mean of each row."""
        return np.asarray(self._summary["mean"])

    @property
    def std(self) -> Array:
        """Predictive standard deviation of each row, the square root of `total`."""
        return np.asarray(self._summary["std"])

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
        levels = _numbers.array(q, "q")
        values = self._native.quantile(np.atleast_1d(levels))
        return values[:, 0] if levels.ndim == 0 else values

    def interval(self, level: float = 0.9) -> Array:
        """Central prediction interval with probability `level`: lower and upper end, (n_rows, 2)."""
        return self._native.interval(_numbers.number(level, "level"))

    def cdf(self, y: ArrayLike) -> Array:
        """Cumulative distribution function of each row at `y`; one `y` for all rows or one for each."""
        return self._native.cdf(self._targets(y))

    def logpdf(self, y: ArrayLike) -> Array:
        """Log density of each row at `y`; one `y` for all rows or one for each."""
        return self._native.logpdf(self._targets(y))

    def pdf(self, y: ArrayLike) -> Array:
        """Density of each row at `y`; one `y` for all rows or one for each."""
        return np.exp(self.logpdf(y))

    def crps(self, y: ArrayLike) -> Array:
        """Continuous ranked probability score (CRPS) of each row at `y`, in units of the target; lower is better."""
        return self._native.crps(self._targets(y))

    def joint(self) -> tuple[Array, Array] | None:
        """Joint Normal distribution of the regression function: mean (n_rows,), covariance (n_rows, n_rows).

        Gaussian processes have it. It is None for the other families, whose members are functions.
        """
        found = self._native.joint()
        return None if found is None else (found["mean"], found["covariance"])

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """Draw `n` independent targets for each row, (n_rows, n)."""
        return self._native.sample(n, _random.seed_of(random_state))

    def _targets(self, y: ArrayLike) -> Array:
        return self._one_per_row(_numbers.array(y, "y"))


class ClassificationDistribution(_Distribution):
    """Predictive distribution of a class for each row: a mixture over the members of a model.

    `total`, `data` (aleatoric) and `knowledge` (epistemic) are in nats: `total` is the entropy of the averaged
    probabilities, `data` the mean entropy of the members, and `knowledge = total - data` their mutual information.
    """

    def __init__(self, native: Distribution, classes: NDArray[Any]) -> None:
        super().__init__(native)
        self.classes = classes

    def _outputs_shape(self) -> tuple[int, ...]:
        return (len(self.classes),)

    @cached_property
    def _summary(self) -> dict[str, Any]:
        """Probabilities, labels and uncertainties, computed in one pass over the model."""
        return self._native.class_summary()

    @property
    def probabilities(self) -> Array:
        """Probability of each class, in the order of `classes`, (n_rows, n_classes)."""
        return np.asarray(self._summary["probabilities"])

    @property
    def proba(self) -> Array:
        """Alias of `probabilities`."""
        return self.probabilities

    @property
    def entropy(self) -> Array:
        """Alias of `total`."""
        return self.total

    @property
    def labels(self) -> NDArray[Any]:
        """Most probable class of each row."""
        return np.asarray(self.classes[self._summary["labels"]])

    @property
    def label(self) -> NDArray[Any]:
        """Alias of `labels`."""
        return self.labels

    def sample(self, n: int = 1, random_state: Any = None) -> NDArray[Any]:
        """Draw `n` independent classes for each row, (n_rows, n)."""
        codes = self._native.sample(n, _random.seed_of(random_state))
        return np.asarray(self.classes[codes.astype(np.intp)])

    def logpmf(self, y: ArrayLike) -> Array:
        """Log probability of class `y` for each row; one class for all rows or one for each."""
        known = [_labels.text(label) for label in self.classes]
        column_of = {name: column for column, name in enumerate(known)}
        # as objects: NumPy's texts drop zero characters at the end
        labels = self._one_per_row(np.asarray(y, dtype=object))
        names = _labels.names_as_in(self.classes, labels, "y")
        unknown = next((at for at, name in enumerate(names) if name not in column_of), None)
        if unknown is not None:
            raise ValueError(f"{labels[unknown]!r} is not a class of the model; the classes are {known}")
        columns = np.array([column_of[name] for name in names], dtype=np.intp)
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities[np.arange(len(self)), columns])
