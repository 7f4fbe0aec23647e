"""The base classes of all estimators: tables to the native model, and its results back. No family is named here."""

from __future__ import annotations

import copy
import difflib
import json
import numbers
import os
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from softwood import _callbacks, _former_names, _frame, _labels, _native, _numbers, _random
from softwood._arguments import Column, FitRun, ImportanceRun, LabelledTable, Table
from softwood._distribution import ClassificationDistribution, RegressionDistribution
from softwood._threads import n_threads
from softwood._validation_rows import validation_rows
from softwood._warn import warn_user

if TYPE_CHECKING:
    from typing_extensions import Self

    from softwood._callbacks import Callback
    from softwood._native import Distribution, Model

RUN_PARAMETERS = ("random_state", "n_jobs", "verbose")
"""Parameters of the run; the other parameters belong to the family."""

Array = NDArray[np.float64]

MAX_INTEGER = 2**63
"""Size from which on an integer is no valid parameter and crosses to the library as text."""

MAX_REPEATS = 1000
"""Largest number of permutations of a column."""

MIN_ROWS_OF_CLASSES = 10
"""Number of rows from which on a target of two whole numbers looks like classes."""

REGISTRY: dict[tuple[str, str], type[Estimator]] = {}
"""The estimator class of each family and task, for reading model files."""


class Estimator(BaseEstimator):
    """A native model with the interface of scikit-learn."""

    _family: ClassVar[str]
    _task: ClassVar[str]
    _former_names: ClassVar[dict[str, str]] = {}
    """Former names of parameters and the current names."""

    _model: Model
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    random_state: Any
    n_jobs: int | None
    verbose: int

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_family" in cls.__dict__:
            REGISTRY[cls._family, cls._task] = cls
            _former_names.accept_in_init(cls, cls._former_names)

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator.

        Parameters
        ----------
        **params
            Names and values. Former names are accepted with a `FutureWarning`.

        Returns
        -------
        self
        """
        params = self._by_current_names(params, stacklevel=3)
        self._check_names(params)
        super().set_params(**params)
        return self

    def _check_names(self, params: dict[str, Any]) -> None:
        """Raise the error of scikit-learn for an unknown parameter, with the most similar name."""
        known = self._get_param_names()
        for given in params:
            name = given.partition("__")[0]
            if name not in known:
                similar = [f" Did you mean {found!r}?" for found in difflib.get_close_matches(name, known, n=1)]
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {type(self).__name__}.{''.join(similar)} "
                    f"Valid parameters are: {known!r}."
                )

    def _by_current_names(self, params: dict[str, Any], *, stacklevel: int) -> dict[str, Any]:
        # a subclass may have a parameter of its own whose name is a former name here
        own = self._get_param_names()
        former = {name: current for name, current in self._former_names.items() if name not in own}
        return _former_names.to_current(params, former, type(self).__name__, stacklevel=stacklevel)

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        *,
        eval_set: Any = None,
        callbacks: Iterable[Callback] | None = None,
        time_limit: float | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
            Features. Columns of texts, booleans or categories are categorical. Every column may have missing cells.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights. A row with weight 2 is equivalent to two equal rows.
        X_val, y_val : like X and y, default=None
            Validation rows for early stopping and for parameters that are chosen automatically. Without them, the model
            holds out a fraction of the training rows where it needs validation rows.
        eval_set : (X_val, y_val) or [(X_val, y_val)], default=None
            The validation rows in the spelling of LightGBM and XGBoost. Only one pair is accepted.
        callbacks : list of callables, default=None
            Each is called with a `softwood.Event` at every epoch, boosting round or tree. One that returns True stops
            the fit, which keeps the best model so far. An exception ends the fit and leaves the estimator as it was.
            Callbacks are called one at a time, from any thread. A callback with a method `wants_snapshot(event)` that
            returns True gets a fitted estimator as `event.snapshot`, where the fit has one; see `softwood.Checkpoint`.
        time_limit : float, default=None
            Seconds after which the fit stops and keeps the best model so far.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If a callback or the time limit stopped the fit; `training_["is_stopped"]` is then True.

        Raises
        ------
        ValueError
            If the data or a parameter cannot be used.
        RuntimeError
            If the fit was stopped before there was a model.

        Examples
        --------
        >>> import numpy as np
        >>> from softwood import SGBRegressor
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> trees = []
        >>> model = SGBRegressor(n_estimators=20, n_members=1, max_depth=2, learning_rate=0.1, random_state=0)
        >>> model = model.fit(X, np.sin(6 * X[:, 0]), callbacks=[lambda event: trees.append(event.tree)])
        >>> max(trees)
        20
        """
        validation = validation_rows(X_val, y_val, eval_set)
        learner = copy.copy(self)
        training = learner._training_set(X, y, sample_weight)
        learner._train(training, validation, callbacks=callbacks, time_limit=time_limit)
        self._take_state(learner)
        return self

    def resume(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        *,
        eval_set: Any = None,
        callbacks: Iterable[Callback] | None = None,
        time_limit: float | None = None,
        **params: Any,
    ) -> Self:
        """Train the fitted model further, in place.

        Boosted hard trees (SGB, SGLB) add `n_estimators` trees, or fewer if validation rows stop the training early.
        Boosted soft trees (VSGBM) need the rows of the first fit too: they add trees up to the new `n_estimators`, and
        then train all trees together for a short time.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
            Features, with the columns of the first fit; they are matched by name if both tables have names. A category
            that the first fit did not see counts as unseen.
        y : array-like of shape (n_samples,)
            Targets. Classes must be classes of the first fit.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights.
        X_val, y_val : like X and y, default=None
            Validation rows, as in `fit`.
        eval_set : (X_val, y_val) or [(X_val, y_val)], default=None
            Another spelling of the validation rows, as in `fit`.
        callbacks : list of callables, default=None
            Callables that receive every event and may stop the training, as in `fit`.
        time_limit : float, default=None
            Seconds after which the training stops and keeps the best model so far.
        **params
            Parameters to change, as in `set_params`. The other parameters keep their values.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the family does not support further training. After this and every other error, the model and its
            parameters are unchanged.
        """
        check_is_fitted(self)
        validation = validation_rows(X_val, y_val, eval_set)
        params = self._by_current_names(params, stacklevel=3)
        learner = copy.copy(self).set_params(**params)
        training = learner._labelled(self._table(X), self._target(y, "y", reset=False), sample_weight)
        learner._train(training, validation, warm_start=self._model, callbacks=callbacks, time_limit=time_limit)
        self._take_state(learner)
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
        """Measure the permutation importance of each column.

        One column at a time is permuted among the rows of `X`; the other columns stay. The changes of the score, of the
        prediction and of knowledge (epistemic) uncertainty show how much the model depends on the column.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
            Rows to measure on, preferably not the training rows.
        y : array-like of shape (n_samples,), default=None
            Targets. Without them, the changes of the score are not measured.
        X_ref : like X, default=None
            Reference rows, such as the training rows. Their cells replace those of the permuted column, so that
            `knowledge_shift` shows which columns make the rows of `X` less known than the reference rows (below zero).
        n_repeats : int, default=5
            Number of permutations of each column, from 1 to 1000.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the permutations.

        Returns
        -------
        dict of arrays of shape (n_features,)
            `pandas.DataFrame` turns it into a table. Every figure is a mean over permutations and has a standard error
            (`..._se`, NaN for a single permutation).

            - `column`: name of the column;
            - `log_likelihood_fall` (with `y`): decrease of the mean log-likelihood of a row;
            - `error_rise` (with `y`): increase of the root mean square error, or of the misclassification rate;
            - `prediction_change`: mean absolute change of the predictive mean in units of the target, or mean
              probability that moves from one class to another;
            - `knowledge_change`: mean absolute change of knowledge uncertainty, as a standard deviation in units of the
              target, or in nats;
            - `knowledge_shift`: mean signed change of knowledge uncertainty.

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
        if not isinstance(n_repeats, numbers.Integral) or not 1 <= n_repeats <= MAX_REPEATS:
            raise ValueError(f"n_repeats = {n_repeats!r}: expected a whole number from 1 to {MAX_REPEATS}")
        target = None if y is None else self._target(y, "y", reset=False)
        run = ImportanceRun(
            reference=None if X_ref is None else self._table(X_ref),
            n_repeats=int(n_repeats),
            seed=_random.seed_of(random_state),
            n_threads=self._n_threads(),
        )
        found = json.loads(self._model.importances(self._table(X), target, run))
        return _importance_arrays(found["columns"])

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Total gain of the splits on each column, normalised to sum 1 (families that split on columns)."""
        check_is_fitted(self)
        gains = self._model.gains()
        if gains is None:
            raise AttributeError(
                f"{type(self).__name__} does not split on columns and has no gains; "
                "use `importances`, which permutes columns"
            )
        return gains

    def export_text(self) -> str:
        """Return the rules of the tree as indented text (only for a model that is a single tree)."""
        return self._tree_export("text")

    def export_svg(self) -> str:
        """Return a drawing of the tree as SVG text (only for a model that is a single tree)."""
        return self._tree_export("svg")

    def export_dict(self) -> dict[str, Any]:
        """Return the nodes of the tree with all digits and categories (only for a model that is a single tree)."""
        nodes: dict[str, Any] = json.loads(self._tree_export("json"))
        return nodes

    def structure(self) -> dict[str, Any]:
        """Return the posterior over the structure of the tree (only for `VaRTRegressor` and `VaRTClassifier`).

        Returns
        -------
        dict
            `depth` (probability of each depth, from 0 on), `n_leaves` (probability of each number of leaves, from 1
            on), `n_fits` (number of fits that these are averages of), and `nodes`: for every node of the first fit
            its number (1 for the root, 2 i and 2 i + 1 for the children of node i), `depth`, the probability that it
            `exists`, and the probability that it `splits` if it exists.
        """
        check_is_fitted(self)
        text = self._model.structure()
        if text is None:
            raise ValueError(f"a {type(self).__name__} has no posterior over the structure of one tree")
        found: dict[str, Any] = json.loads(text)
        return found

    def _tree_export(self, format: str) -> str:  # noqa: A002
        check_is_fitted(self)
        text = self._model.tree_export(format)
        if text is None:
            raise ValueError(f"a {type(self).__name__} is not a single tree and cannot be exported")
        return text

    def _training_set(self, X: Any, y: Any, sample_weight: Any) -> LabelledTable:
        """Read the training rows and set the attributes that describe their features and classes."""
        features = self._table(X, reset=True)
        target = self._target(y, "y")
        taken = set(_frame.names_of(features))
        while target.name in taken:
            target = target._replace(name=f"{target.name}_target")
        return self._labelled(features, target, sample_weight)

    def _labelled(self, features: Table, target: Column, sample_weight: Any) -> LabelledTable:
        check_consistent_length(_frame.first_values(features), target.values)
        return self._with_labels(features, target, _weights(sample_weight, target.values))

    def _with_labels(self, features: Table, target: Column, weights: NDArray[np.float64] | None) -> LabelledTable:
        kind, dtype = self._label_types()
        return LabelledTable(
            features, target, weights, labels=kind, label_dtype=dtype, is_named=hasattr(self, "feature_names_in_")
        )

    def _train(
        self,
        training: LabelledTable,
        validation: tuple[Any, Any] | None,
        *,
        callbacks: Any,
        time_limit: float | None,
        warm_start: Model | None = None,
    ) -> None:
        self._warn_of_former_names(stacklevel=4)
        if time_limit is not None and not isinstance(time_limit, numbers.Real):
            raise TypeError(f"time_limit is a {type(time_limit).__name__}: expected a number of seconds")
        time_limit = None if time_limit is None else _numbers.number(time_limit, "time_limit")
        called = _callbacks.all_callbacks(callbacks, self.verbose)
        dispatcher = _callbacks.Dispatcher(called, self._with_model) if called else None
        run = FitRun(
            seed=_random.seed_of(self.random_state),
            n_threads=self._n_threads(),
            validation=None if validation is None else self._validation_set(*validation),
            warm_start=warm_start,
            time_limit=time_limit,
            callback=dispatcher,
            with_snapshots=dispatcher is not None and dispatcher.with_snapshots,
        )
        self._model = _native.fit(self._family, self._params_json(), training, run)
        warning = self._model.warning()
        if warning is not None:
            warnings.warn(warning, stacklevel=3)
        if (dispatcher or time_limit is not None) and self.training_["is_stopped"]:
            cause = "a callback" if dispatcher and dispatcher.is_stopped else f"time_limit={time_limit}"
            warnings.warn(f"{cause} stopped the fit before its end: the best model so far is kept", stacklevel=3)

    def _warn_of_former_names(self, *, stacklevel: int) -> None:
        for note in _native.former_names(self._family, self._text_params()):
            warnings.warn(note, FutureWarning, stacklevel=stacklevel)

    def _with_model(self, model: Model) -> Self:
        """Return an estimator with the parameters and columns of this one and another model."""
        estimator = copy.copy(self)
        estimator._model = model
        return estimator

    def _take_state(self, learner: Self) -> None:
        """Take over parameters and fitted attributes of a copy that was fitted: a fit that fails changes nothing."""
        # absent from the copy if the new table has no column names
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(learner.__dict__)

    def _validation_set(self, X_val: Any, y_val: Any) -> LabelledTable:
        features = self._table(X_val)
        return self._with_labels(features, self._target(y_val, "y_val", reset=False), None)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file for `softwood.load`, the command line and the Rust library."""
        check_is_fitted(self)
        self._model.save(path)

    @property
    def training_(self) -> dict[str, Any]:
        """Training report: training curve, settings tried and chosen, and whether the fit was stopped."""
        check_is_fitted(self)
        return {"is_stopped": False, **json.loads(self._model.describe())["training"]}

    def _target(self, y: Any, name: str, *, reset: bool = True) -> Column:
        raise NotImplementedError

    def _label_types(self) -> tuple[str, str | None]:
        """Return the type of the class labels and their NumPy type."""
        return "text", None

    def _restore(self, model: Model, about: dict[str, Any]) -> None:
        """Set the fitted attributes from a model file and its description."""
        names = [field["name"] for field in about["schema"]["fields"]]
        self.n_features_in_ = len(names)
        if about["has_names"]:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self._model = model

    def _distribution(self, X: Any) -> Distribution:
        check_is_fitted(self)
        table = self._table(X)
        # asking joblib takes longer than a prediction of a few rows, which runs on one thread
        is_small = len(_frame.first_values(table)) < _native.MIN_ROWS_FOR_THREADS and self.n_jobs is None
        return self._model.distribution(table, 1 if is_small else self._n_threads())

    def _table(self, X: Any, *, reset: bool = False) -> Table:
        """Read a table; columns without names get the names of the fit."""
        if not _frame.is_frame(X):
            X = _frame.plain_array(X)
            if isinstance(X, np.ndarray) and X.ndim == 2:
                # before the cells are looked at: an array may be a small one that is broadcast
                _native.check_matrix("a copy of X", *X.shape)
            table = _frame.from_array(validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan"))
            return table if reset else _frame.renamed(table, self._names())
        frame = _frame.from_frame(X)
        if reset:
            self._set_feature_names(frame)
            return frame.columns
        return self._match_columns(frame)

    def _set_feature_names(self, frame: _frame.Frame) -> None:
        if not frame.columns:
            raise ValueError(f"{type(self).__name__} needs at least one feature: the table has no columns")
        self.n_features_in_ = len(frame.columns)
        if frame.is_named:
            self.feature_names_in_ = np.asarray(_frame.names_of(frame.columns), dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _match_columns(self, frame: _frame.Frame) -> Table:
        """Match columns by position unless both tables have names; then the native model matches them by name."""
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
        return _frame.default_names(self.n_features_in_)

    def _n_threads(self) -> int:
        return n_threads(self.n_jobs)

    def _family_params(self) -> dict[str, Any]:
        params = self.get_params(deep=False).items()
        return {name: _to_json(value) for name, value in params if name not in RUN_PARAMETERS}

    def _params_json(self) -> str:
        return json.dumps(self._family_params())

    def _text_params(self) -> list[tuple[str, str]]:
        """Return the parameters whose values are texts, such as choices."""
        return [(name, value) for name, value in self._family_params().items() if isinstance(value, str)]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


class Regressor(RegressorMixin, Estimator):
    """Base class of the regressors."""

    _task = "regression"

    @overload
    def predict(self, X: Any, *, return_std: Literal[False] = ..., quantiles: ArrayLike | None = ...) -> Array: ...
    @overload
    def predict(self, X: Any, *, return_std: Literal[True], quantiles: None = ...) -> tuple[Array, Array]: ...
    def predict(
        self, X: Any, *, return_std: bool = False, quantiles: ArrayLike | None = None
    ) -> Array | tuple[Array, Array]:
        """Predict the mean of the predictive distribution of each row, or quantiles.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return the standard deviation of the predictive distribution, too.
        quantiles : float or array-like of shape (n_levels,), default=None
            Levels between 0 and 1: return these quantiles instead of the mean.

        Returns
        -------
        ndarray of shape (n_samples,)
            The mean; with `return_std`, a pair of mean and standard deviation; with `quantiles`, the quantiles, of
            shape (n_samples, n_levels) for several levels.
        """
        if quantiles is not None:
            if return_std:
                raise ValueError("return_std and quantiles ask for different predictions: give one of them")
            return self.predict_quantiles(X, quantiles)
        if return_std:
            dist = self.predict_dist(X)
            return dist.mean, dist.std
        return self._distribution(X).mean()

    def predict_quantiles(self, X: Any, q: ArrayLike) -> Array:
        """Predict quantiles of each row.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
        q : float or array-like of shape (n_levels,)
            Levels between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples,) for one level, (n_samples, n_levels) for several
        """
        return self.predict_dist(X).quantile(q)

    def predict_interval(self, X: Any, level: float = 0.9) -> Array:
        """Predict a central interval that holds the target of each row with probability `level`.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
        level : float, default=0.9
            Probability between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends.
        """
        return self.predict_dist(X).interval(level)

    def predict_dist(self, X: Any) -> RegressionDistribution:
        """Predict the distribution of each row.

        Its variance has two parts: data (aleatoric) uncertainty is noise in the target, which more training rows do not
        reduce; knowledge (epistemic) uncertainty is the disagreement of the members of the model, which more training
        rows reduce.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)

        Returns
        -------
        RegressionDistribution
            Moments, quantiles, intervals, densities, scores, samples, and data and knowledge uncertainty.
        """
        return RegressionDistribution(self._distribution(X))

    def _target(self, y: Any, name: str, *, reset: bool = True) -> Column:
        if y is None:
            raise ValueError(_no_target(self))
        values = column_or_1d(_numbers.target(y, name), warn=True)
        if reset:
            self._warn_of_classes(values)
        return Column(_target_name(y), values)

    def _warn_of_classes(self, values: NDArray[np.float64]) -> None:
        """Warn of a target with two whole numbers, which are classes rather than measurements."""
        if len(values) < MIN_ROWS_OF_CLASSES:
            return
        low, high = values.min(), values.max()
        if low < high and low % 1 == 0 and high % 1 == 0 and bool(np.all((values == low) | (values == high))):
            classifier = REGISTRY.get((self._family, "classification"))
            name = classifier.__name__ if classifier else "a classifier"
            warn_user(
                f"y has only the values {low:g} and {high:g}, which {type(self).__name__} fits as numbers; "
                f"use {name} if they are classes"
            )


class Classifier(ClassifierMixin, Estimator):
    """Base class of the classifiers."""

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
        codes = self._distribution(X).labels()
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of each class, in the order of `classes_`.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._distribution(X).probabilities()

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the natural logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict_dist(self, X: Any) -> ClassificationDistribution:
        """Predict the distribution over the classes for each row.

        Its entropy has two parts: data (aleatoric) uncertainty is overlap of the classes, which more training rows do
        not reduce; knowledge (epistemic) uncertainty is the disagreement of the members of the model, which more
        training rows reduce.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)

        Returns
        -------
        ClassificationDistribution
            Probabilities, labels, log probabilities, samples, and data and knowledge uncertainty.
        """
        distribution = self._distribution(X)
        return ClassificationDistribution(distribution, self.classes_)

    def _target(self, y: Any, name: str, *, reset: bool = True) -> Column:
        if y is None:
            raise ValueError(_no_target(self))
        labels = _labels.from_target(y, name)
        missing = _frame.is_missing(labels)
        if not missing.any():  # the library names the row of a missing label
            check_classification_targets(labels)
        classes, inverse = np.unique(labels[~missing], return_inverse=True)
        if reset:
            self.classes_ = classes
        codes = np.full(labels.shape, _frame.MISSING, dtype=np.uint32)
        codes[~missing] = inverse
        names = _labels.names(classes, name) if reset else _labels.names_as_in(self.classes_, classes, name)
        return Column(_target_name(y), codes, names)

    def _label_types(self) -> tuple[str, str | None]:
        return _labels.kind_of(self.classes_), _labels.dtype_of(self.classes_)

    def _restore(self, model: Model, about: dict[str, Any]) -> None:
        super()._restore(model, about)
        schema = about["schema"]
        self.classes_ = _labels.from_file(schema["classes"], schema["labels"], schema.get("label_dtype"))


def load(path: str | os.PathLike[str]) -> Estimator:
    """Read a model file.

    Parameters
    ----------
    path : str or path
        A file written by `save`, by the command line (`softwood fit`) or by the Rust library.

    Returns
    -------
    VSTRegressor, VSTClassifier, ...
        A fitted estimator of the family and task of the file.

    Notes
    -----
    A file keeps the class labels and their type, and whether the training table had column names.

    In files of the command line, the classes `true` and `false` are booleans, and the classes of a numeric column are
    integers if all of them are, else floats.
    """
    model = _native.Model.load(path)
    about = json.loads(model.describe())
    estimator_class = REGISTRY[about["family"], about["schema"]["task"]]
    known = set(estimator_class._get_param_names())
    params = {name: value for name, value in (about["params"] or {}).items() if name in known}
    estimator = estimator_class(**params)
    estimator._restore(model, about)
    return estimator


def ood(model: Estimator, X_in: Any, X_out: Any) -> dict[str, Any]:
    """Measure how well uncertainty separates in-domain rows from out-of-domain (OOD) rows.

    Parameters
    ----------
    model : fitted estimator
    X_in : array-like, pandas, polars or pyarrow table of shape (n_in, n_features)
        In-domain rows, such as a test set. Do not use the training rows: their uncertainty is too low.
    X_out : array-like, pandas, polars or pyarrow table of shape (n_out, n_features)
        Out-of-domain rows.

    Returns
    -------
    dict
        `n_in`, `n_out`, and a dict for each of `total`, `data` (aleatoric) and `knowledge` (epistemic) uncertainty:

        - `auroc`: probability that a row of `X_out` is more uncertain than a row of `X_in`; a tie counts one half;
        - `one_split_auroc`: AUROC of a tree with one split on the uncertainty, at least 0.5;
        - `threshold`: threshold of that split, None if all values are equal;
        - `median_in`, `median_out`: median uncertainty.

        Thresholds and medians are standard deviations in units of the target, or entropies in nats.

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
    inside, outside = model._table(X_in), model._table(X_out)
    report: dict[str, Any] = json.loads(model._model.ood(inside, outside, model._n_threads()))
    return report


def _importance_arrays(columns: list[dict[str, Any]]) -> dict[str, NDArray[Any]]:
    """Turn one dict per column into one array per figure."""
    found: dict[str, NDArray[Any]] = {"column": np.array([part["column"] for part in columns], dtype=object)}
    for name in [name for name in columns[0] if name != "column"]:
        for suffix, key in (("", "mean"), ("_se", "se")):
            found[name + suffix] = np.array([part[name][key] for part in columns], dtype=np.float64)
    return found


def _target_name(y: Any) -> str:
    """Return the name of a named series, or a default."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name and _frame.is_encodable(name) else "target"


def _weights(sample_weight: Any, rows: NDArray[Any]) -> NDArray[np.float64] | None:
    if sample_weight is None:
        return None
    _frame.reject_mask(sample_weight, "sample_weight")
    with _numbers.naming("sample_weight"):
        weights: NDArray[np.float64] = _check_sample_weight(sample_weight, rows, dtype=np.float64)
    return weights


def _to_json(value: Any) -> Any:
    """Convert a parameter to a JSON value. Other values become text, which the library rejects with a message."""
    if isinstance(value, dict):
        return {_json_text(_labels.text(key)): _to_json(number) for key, number in value.items()}
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str):
        return _json_text(value)
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) <= MAX_INTEGER):
        return value
    return value if isinstance(value, float) and np.isfinite(value) else repr(value)


def _json_text(value: str) -> str:
    return value if _frame.is_encodable(value) else ascii(value)


def _no_target(estimator: Estimator) -> str:
    return f"{type(estimator).__name__} requires y to be passed, but the target y is None"
