"""What every estimator shares: tables in, one native model inside, answers out. No family is named here."""

from __future__ import annotations

import json
import numbers
import os
import warnings
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from softwood import _frame, _native, _random
from softwood._distribution import ClassificationDistribution, RegressionDistribution

if TYPE_CHECKING:
    from typing_extensions import Self

    from softwood._native import Answer, Column, Columns, Labelled, Model

NOT_OF_THE_FAMILY = ("random_state", "n_jobs")
"""Parameters that belong to the run, not to the model."""

MOST_REPEATS = 1000
"""Times that a column may be shuffled."""

REGISTRY: dict[tuple[str, str], type[Estimator]] = {}
"""Estimator of each family and task, for reading model files."""


class Estimator(BaseEstimator):
    """A native model behind scikit-learn's interface."""

    _family: ClassVar[str]
    _task: ClassVar[str]

    _model: Model
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    random_state: Any
    n_jobs: int | None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_family" in cls.__dict__:
            REGISTRY[cls._family, cls._task] = cls

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
            Features. Texts, booleans and categories are categorical columns; missing cells are welcome in all.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a whole number is as good as repeating the row.
        X_val, y_val : like X and y, default=None
            Rows for early stopping and for what is chosen automatically. Without them a part of the training
            rows is set aside.

        Returns
        -------
        self
        """
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val belong together: give both or neither")
        columns = self._columns(X, reset=True)
        target = self._target(y, "y")
        taken = set(_frame.names_of(columns))
        while target[0] in taken:
            target = (f"{target[0]}_target", *target[1:])
        check_consistent_length(_frame.first(columns), target[1])
        training: Labelled = (columns, target, _weights(sample_weight, target[1]), self._labels())
        self._learn(training, self._held_out(X_val, y_val), None)
        return self

    def resume(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Train the fitted model further, in place.

        Boosted hard trees get `n_estimators` more trees, or as many of them as `X_val` and `y_val` ask for. Boosted
        soft trees want the old rows too: they get the trees that a larger `n_trees` asks for, and a short run of all.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
            Rows to go on with: the columns of the fit, by name where both have names. A category that the fit has not
            seen counts as unseen.
        y : array-like of shape (n_samples,)
            Targets; of the classes of the fit.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        X_val, y_val : like X and y, default=None
            Rows for early stopping, as in `fit`.
        **params
            Parameters to change from now on, as by `set_params`; the others stay as they are.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            When the family cannot go on from a fitted model; then, as after any other error, the model stays as it was.
        """
        check_is_fitted(self)
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val belong together: give both or neither")
        columns = self._columns(X)
        target = self._target(y, "y", reset=False)
        check_consistent_length(_frame.first(columns), target[1])
        training: Labelled = (columns, target, _weights(sample_weight, target[1]), self._labels())
        before = {name: value for name, value in self.get_params(deep=False).items() if name in params}
        self.set_params(**params)
        try:
            self._learn(training, self._held_out(X_val, y_val), self._model)
        except BaseException:
            self.set_params(**before)
            raise
        return self

    def importances(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        X_ref: Any = None,
        n_repeats: int = 5,
        random_state: Any = 0,
    ) -> dict[str, NDArray[Any]]:
        """Measure what each column is worth to the fitted model, by shuffling it.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
            Rows to ask, best those that the model was not fitted to.
        y : array-like of shape (n_samples,), default=None
            Their targets; without them nothing is scored.
        X_ref : like X, default=None
            Well-known rows, such as the training rows, that lend their cells in place of `X`'s own: then
            `knowledge_shift` shows which columns make the rows of `X` less known than those (below zero).
        n_repeats : int, default=5
            Times that each column is shuffled.
        random_state : int, RandomState, Generator or None, default=0
            Decides the shuffles.

        Returns
        -------
        dict of arrays of shape (n_features,)
            `column`, and means over shuffles with their standard errors (`..._se`, NaN of a single shuffle);
            `pandas.DataFrame` makes a table of it. With `y`: `log_likelihood_fall` of a row and `error_rise` (root mean
            square error, or share of wrong labels). `prediction_change`: how far a row's mean moves, in the target's
            units, or how much probability goes from one class to another. `knowledge_change`: how far a row's knowledge
            uncertainty moves (standard deviation in the target's units, or nats); `knowledge_shift`: the same with its
            sign.

        Examples
        --------
        >>> import numpy as np
        >>> from softwood import SGLBRegressor
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> model = SGLBRegressor(n_estimators=20, n_members=4, max_depth=2, learning_rate=0.1, random_state=0)
        >>> found = model.fit(X, 3 * X[:, 1]).importances(X, 3 * X[:, 1])
        >>> int(np.argmax(found["log_likelihood_fall"]))
        1
        """
        check_is_fitted(self)
        if not isinstance(n_repeats, numbers.Integral) or not 1 <= n_repeats <= MOST_REPEATS:
            raise ValueError(f"n_repeats = {n_repeats!r}: expected a whole number from 1 to {MOST_REPEATS}")
        target = None if y is None else self._target(y, "y", reset=False)
        reference = None if X_ref is None else self._columns(X_ref)
        run = (int(n_repeats), _random.seed_of(random_state), self._threads())
        found = json.loads(self._model.importances(self._columns(X), target, reference, run))
        return _by_name(found["columns"])

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """What the splits on each column gained in training, as parts of the whole (families that split on columns)."""
        check_is_fitted(self)
        gains = self._model.gains()
        if gains is None:
            raise AttributeError(
                f"{type(self).__name__} does not split on columns, so that it has no gains; "
                "`importances` shows what columns are worth on some rows"
            )
        return gains

    def export_text(self) -> str:
        """Write a model that is a single tree as indented rules."""
        return self._outline("text")

    def export_svg(self) -> str:
        """Draw a model that is a single tree; the text of an SVG picture."""
        return self._outline("svg")

    def export_dict(self) -> dict[str, Any]:
        """Give the nodes of a model that is a single tree, with every digit and category."""
        nodes: dict[str, Any] = json.loads(self._outline("json"))
        return nodes

    def _outline(self, form: str) -> str:
        check_is_fitted(self)
        outline = self._model.outline(form)
        if outline is None:
            raise ValueError(f"a {type(self).__name__} is not a single tree that could be shown")
        return outline

    def _held_out(self, X_val: Any, y_val: Any) -> Labelled | None:
        if X_val is None:
            return None
        return self._columns(X_val), self._target(y_val, "y_val", reset=False), None, self._labels()

    def _learn(self, training: Labelled, held_out: Labelled | None, base: Model | None) -> None:
        run = (_random.seed_of(self.random_state), self._threads(), base)
        self._model = _native.fit(self._family, self._parameters(), training, held_out, run)
        warning = self._model.warning()
        if warning is not None:
            warnings.warn(warning, stacklevel=3)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `softwood.load`, the program and the Rust library read."""
        check_is_fitted(self)
        self._model.save(path)

    @property
    def training_(self) -> dict[str, Any]:
        """How the model came about: loss curve, what was tried and what was chosen."""
        check_is_fitted(self)
        report: dict[str, Any] = json.loads(self._model.describe())["training"]
        return report

    def _target(self, y: Any, name: str, *, reset: bool = True) -> Column:
        raise NotImplementedError

    def _labels(self) -> str:
        """Say what the names of classes stand for."""
        return "text"

    def _restore(self, model: Model, schema: dict[str, Any]) -> None:
        """Take over a model read from a file."""
        names = [field["name"] for field in schema["fields"]]
        self.n_features_in_ = len(names)
        if names != _frame.positions(len(names)):
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self._model = model

    def _answer(self, X: Any) -> Answer:
        check_is_fitted(self)
        return self._model.answer(self._columns(X), self._threads())

    def _columns(self, X: Any, *, reset: bool = False) -> Columns:
        """Read a table; names are those of the fit where the table has none."""
        if not _frame.is_frame(X):
            columns = _frame.from_array(validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan"))
            return columns if reset else _frame.renamed(columns, self._names())
        frame = _frame.from_frame(X)
        if reset:
            self._remember(frame)
            return frame.columns
        return self._matched(frame)

    def _remember(self, frame: _frame.Frame) -> None:
        if not frame.columns:
            raise ValueError(f"{type(self).__name__} needs at least one feature: the table has no columns")
        self.n_features_in_ = len(frame.columns)
        if frame.is_named:
            self.feature_names_in_ = np.asarray(_frame.names_of(frame.columns), dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _matched(self, frame: _frame.Frame) -> Columns:
        """Leave names to the model where both sides have them; go by position otherwise, as scikit-learn does."""
        knows_names = hasattr(self, "feature_names_in_")
        if knows_names and frame.is_named:
            return frame.columns
        if len(frame.columns) != self.n_features_in_:
            raise ValueError(
                f"X has {len(frame.columns)} features, but {type(self).__name__} "
                f"is expecting {self.n_features_in_} features as input."
            )
        if knows_names:
            warnings.warn(
                f"X does not have valid feature names, but {type(self).__name__} was fitted with feature names",
                stacklevel=5,
            )
        elif frame.is_named:
            warnings.warn(
                f"X has feature names, but {type(self).__name__} was fitted without feature names",
                stacklevel=5,
            )
        return _frame.renamed(frame.columns, self._names())

    def _names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return list(self.feature_names_in_)
        return _frame.positions(self.n_features_in_)

    def _threads(self) -> int:
        """Read scikit-learn's `n_jobs`: None and -1 are all cores."""
        if self.n_jobs is None or self.n_jobs == -1:
            return 0
        if not isinstance(self.n_jobs, numbers.Integral) or self.n_jobs < 1:
            raise ValueError(f"n_jobs = {self.n_jobs!r}: expected None, -1 or a positive whole number")
        return int(self.n_jobs)

    def _parameters(self) -> str:
        """Write the parameters of the family as JSON; what cannot be written crosses as text and is refused there."""
        own = self.get_params(deep=False).items()
        return json.dumps({name: _plain(value) for name, value in own if name not in NOT_OF_THE_FAMILY})

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


class Regressor(RegressorMixin, Estimator):
    """An estimator whose target is a number."""

    _task = "regression"

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the mean of each row's distribution.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._answer(X).mean()

    def predict_dist(self, X: Any) -> RegressionDistribution:
        """Predict the whole distribution of each row.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)

        Returns
        -------
        RegressionDistribution
            Ask it for moments, quantiles, intervals, densities, samples and the two kinds of uncertainty.
        """
        return RegressionDistribution(self._answer(X))

    def _target(self, y: Any, name: str, *, reset: bool = True) -> Column:
        if y is None:
            raise ValueError(_no_target(self))
        values = check_array(y, ensure_2d=False, dtype=np.float64, input_name=name, ensure_min_samples=0)
        return _target_name(y), column_or_1d(values, warn=True), None


class Classifier(ClassifierMixin, Estimator):
    """An estimator whose target is a class."""

    _task = "classification"

    classes_: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.predict_dist(X).label

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of each class, in the order of `classes_`.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self.predict_dist(X).probabilities

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the natural logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict_dist(self, X: Any) -> ClassificationDistribution:
        """Predict the whole distribution of each row.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)

        Returns
        -------
        ClassificationDistribution
            Ask it for probabilities, labels and the two kinds of uncertainty.
        """
        answer = self._answer(X)
        return ClassificationDistribution(answer, self.classes_)

    def _target(self, y: Any, name: str, *, reset: bool = True) -> Column:
        if y is None:
            raise ValueError(_no_target(self))
        labels = check_array(y, ensure_2d=False, dtype=None, input_name=name, ensure_min_samples=0)
        labels = column_or_1d(labels, warn=True)
        missing = _frame.is_missing(labels)
        check_classification_targets(labels[~missing])
        classes, inverse = np.unique(labels[~missing], return_inverse=True)
        if reset:
            self.classes_ = classes
        codes = np.full(labels.shape, _frame.MISSING, dtype=np.uint32)
        codes[~missing] = inverse
        return _target_name(y), codes, [_frame.text(label) for label in classes]

    def _labels(self) -> str:
        return _frame.kind_of(self.classes_)

    def _restore(self, model: Model, schema: dict[str, Any]) -> None:
        super()._restore(model, schema)
        self.classes_ = _classes(schema["classes"], schema["labels"])


def load(path: str | os.PathLike[str]) -> Estimator:
    """Read a model file, whichever interface wrote it.

    Parameters
    ----------
    path : str or path
        A file written by `save`, by `softwood fit` or by the Rust library.

    Returns
    -------
    VSTRegressor, VSTClassifier, ...
        A fitted estimator of the family and task of the file.

    Notes
    -----
    A file holds the names of classes and whether they were texts, numbers or truth values: they come back as arrays
    of texts, of the smallest of `int64` and `float64` that holds them, or of booleans. Pickling keeps the very type.
    The program takes `true` and `false` for truth values, and the classes of a numeric column for numbers.
    """
    model = _native.Model.load(path)
    about = json.loads(model.describe())
    kind = REGISTRY[about["family"], about["schema"]["task"]]
    known = set(kind._get_param_names())
    estimator = kind(**{name: value for name, value in (about["params"] or {}).items() if name in known})
    estimator._restore(model, about["schema"])
    return estimator


def ood(model: Estimator, X_in: Any, X_out: Any) -> dict[str, Any]:
    """Tell how well a model's uncertainty separates rows of its domain from others.

    Parameters
    ----------
    model : fitted estimator
    X_in : array-like, pandas, polars or pyarrow table of shape (n_in, n_features)
        Fresh rows of the kind that the model was fitted to; not its training rows, which it knows too well.
    X_out : array-like, pandas, polars or pyarrow table of shape (n_out, n_features)
        Rows of another kind.

    Returns
    -------
    dict
        `n_in`, `n_out`, and for each of `total`, `data` and `knowledge` a dict: `auroc`, the probability that a row of
        `X_out` is more uncertain than one of `X_in`, ties counting one half; `one_split_auroc`, that of a tree with one
        split, at least 0.5; its `threshold` (None where all values are equal); `median_in` and `median_out`. The last
        three are standard deviations in the target's units, or entropies in nats.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import SGLBRegressor, ood
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = SGLBRegressor(n_estimators=20, n_members=4, max_depth=2, learning_rate=0.1, random_state=0)
    >>> report = ood(model.fit(X, np.sin(6 * X[:, 0])), X, X + 2)
    >>> sorted(report["knowledge"])
    ['auroc', 'median_in', 'median_out', 'one_split_auroc', 'threshold']
    """
    if not isinstance(model, Estimator):
        raise TypeError(f"model is a {type(model).__name__}: expected a fitted estimator of softwood")
    check_is_fitted(model)
    found = model._model.ood(model._columns(X_in), model._columns(X_out), model._threads())
    report: dict[str, Any] = json.loads(found)
    return report


def _by_name(columns: list[dict[str, Any]]) -> dict[str, NDArray[Any]]:
    """Turn figures by column into columns of figures."""
    found: dict[str, NDArray[Any]] = {"column": np.array([part["column"] for part in columns], dtype=object)}
    for name in [name for name in columns[0] if name != "column"]:
        for suffix, key in (("", "mean"), ("_se", "se")):
            found[name + suffix] = np.array([part[name][key] for part in columns], dtype=np.float64)
    return found


def _classes(names: list[str], labels: str) -> NDArray[Any]:
    """Give class names the type they had."""
    if labels == "boolean":
        return np.array([name == "true" for name in names])
    if labels == "text":
        return np.array(names)
    try:
        return np.array([np.int64(name) for name in names])
    except (ValueError, OverflowError):
        return np.array([np.float64(name) for name in names])


def _target_name(y: Any) -> str:
    """Take the target's name from a named column."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else "target"


def _weights(sample_weight: Any, rows: NDArray[Any]) -> NDArray[np.float64] | None:
    if sample_weight is None:
        return None
    weights: NDArray[np.float64] = _check_sample_weight(sample_weight, rows, dtype=np.float64)
    return weights


def _plain(value: Any) -> Any:
    """Turn a parameter into what JSON can hold; the keys of a dict are named as classes are."""
    if isinstance(value, dict):
        return {_frame.text(key): _plain(number) for key, number in value.items()}
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return value if isinstance(value, float) and np.isfinite(value) else repr(value)


def _no_target(estimator: Estimator) -> str:
    return f"{type(estimator).__name__} requires y to be passed, but the target y is None"
