"""Effects of a treatment on a numeric outcome, with any regressor of Softwood.

`CausalEstimator` has the method names of EconML. The effects are causal only if the covariates contain everything that
influences both the treatment and the outcome; no table can show whether they do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from softwood import _frame, _native, _numbers, _random
from softwood._arguments import ArrayTable, CausalRun, CausalTable, Column, Table
from softwood._base import REGISTRY, Classifier, Estimator, Regressor
from softwood._threads import n_threads

if TYPE_CHECKING:
    from typing_extensions import Self

    from softwood._native import Effects

Array = NDArray[np.float64]

__all__ = [
    "CausalEstimator",
    "CausalProblem",
    "EffectInference",
    "Overlap",
    "PolicyValue",
    "ihdp_problem",
    "toy_problem",
]


@dataclass(frozen=True)
class EffectInference:
    """An estimated average effect with its uncertainty.

    Attributes
    ----------
    mean_point : float
        Estimate.
    stderr : float
        Standard error.
    draws : ndarray
        Draws of the average effect.
    """

    mean_point: float
    stderr: float
    draws: Array
    _interval: Any
    """Computes the interval for a level."""

    def conf_int(self, alpha: float = 0.1) -> tuple[float, float]:
        """Return the central interval that contains the average effect with probability 1 - alpha.

        Parameters
        ----------
        alpha : float, default=0.1
            Probability outside of the interval.

        Returns
        -------
        tuple of float
            Lower and upper end.
        """
        found = self._interval(1.0 - _probability(alpha))
        return found["lower"], found["upper"]

    @property
    def stderr_mean(self) -> float:
        """The name of `stderr` in EconML."""
        return self.stderr

    def conf_int_mean(self, *, alpha: float = 0.1) -> tuple[float, float]:
        """Return `conf_int` under its name in EconML."""
        return self.conf_int(alpha)


@dataclass(frozen=True)
class Overlap:
    """How well the treated and the control rows overlap.

    Attributes
    ----------
    propensity : ndarray of shape (n_rows,)
        Probability of treatment of each row, by a model that has not seen the row.
    share_outside : float
        Share of the rows with a propensity below 0.05 or above 0.95.
    factual_knowledge, counterfactual_knowledge : ndarray of shape (n_rows,)
        Knowledge (epistemic) standard deviation of the outcome under the treatment that the row had, and under the
        other one.
    n_extrapolated : int
        Number of rows whose counterfactual knowledge is more than twice the 90% quantile of the factual one.
    warnings : list of str
        Reasons not to trust the effects of some rows.
    """

    propensity: Array
    share_outside: float
    n_below: int
    n_above: int
    n_clipped: int
    factual_knowledge: Array
    counterfactual_knowledge: Array
    n_extrapolated: int
    warnings: list[str]


@dataclass(frozen=True)
class PolicyValue:
    """The value of a policy in units of the outcome, less the costs of the treatments.

    Every estimate is a dict with `mean`, `std`, `lower`, `upper` and `level`.

    Attributes
    ----------
    value : dict
        Average outcome under the policy.
    gain : dict
        Average gain over treating no row.
    treat_all, treat_none : dict
        Average outcome if all rows or no row are treated.
    share_treated : float
        Share of the rows that the policy treats.
    decisions : ndarray of bool of shape (n_rows,)
        Whom the policy treats.
    """

    value: dict[str, float]
    gain: dict[str, float]
    treat_all: dict[str, float]
    treat_none: dict[str, float]
    share_treated: float
    decisions: NDArray[np.bool_]


@dataclass(frozen=True)
class CausalProblem:
    """Rows with a treatment and an outcome, and the effects that they were drawn with.

    Attributes
    ----------
    X : covariates
    treatment : ndarray of shape (n_rows,)
        0 or 1.
    outcome : ndarray of shape (n_rows,)
    true_effect : float
        Average effect over the rows.
    true_effect_on_treated : float
        Average effect over the treated rows.
    true_cate : ndarray of shape (n_rows,)
        Effect of each row, given its covariates.
    """

    X: Any
    treatment: Array
    outcome: Array
    true_effect: float
    true_effect_on_treated: float
    true_cate: Array


class CausalEstimator(BaseEstimator):
    """Effects of a treatment, on average and for every row, with intervals.

    Parameters
    ----------
    model : regressor or str, default="vst"
        Model of the outcome: a regressor of Softwood, which is not changed, or the name of a family.
    method : {"doubly-robust", "single", "per-arm"}, default="doubly-robust"
        - `"single"`: one model with the treatment as a column (S-learner);
        - `"per-arm"`: one model for each arm (T-learner);
        - `"doubly-robust"`: cross-fitted models of outcome and propensity in augmented inverse-propensity weighted
          scores (AIPW), and a regression of the scores for the effects of single rows (DR-learner).
    propensity : classifier, str or None, default=None
        Model of the probability of treatment; None is a logistic regression with a posterior over its weights.
    treated, control : optional
        The two levels of the treatment to compare; needed if there are more than two. Rows of other levels are left
        out.
    n_folds : int, default=5
        Number of folds of cross-fitting.
    clip : float, default=0.02
        Propensities below `clip` or above 1 - `clip` are set to it in the scores.
    scope : {"sample", "population"}, default="sample"
        Whether the intervals of average effects are for the average over the given rows, whose covariates are fixed,
        or over the population that the rows were drawn from.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds and fits. An integer equals `--seed` of the command line.
    n_jobs : int or None, default=None
        Number of threads, as in the estimators. The result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood import TreeRegressor
    >>> from softwood.causal import CausalEstimator
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(600, 2))
    >>> T = rng.uniform(size=600) < 0.2 + 0.6 * X[:, 0]
    >>> Y = 3 * X[:, 0] + 2 * T + rng.normal(0, 0.3, 600)
    >>> effects = CausalEstimator(TreeRegressor(), propensity="tree").fit(Y, T, X)
    >>> lower, upper = effects.ate_interval()
    >>> bool(lower < 2 < upper)
    True
    >>> effects.effect(X[:5]).shape
    (5,)
    """

    def __init__(
        self,
        model: Any = "vst",
        method: str = "doubly-robust",
        *,
        propensity: Any = None,
        treated: Any = None,
        control: Any = None,
        n_folds: int = 5,
        clip: float = 0.02,
        scope: str = "sample",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.method = method
        self.propensity = propensity
        self.treated = treated
        self.control = control
        self.n_folds = n_folds
        self.clip = clip
        self.scope = scope
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, Y: ArrayLike, T: ArrayLike, X: Any) -> Self:
        """Estimate the effects of the treatment.

        Parameters
        ----------
        Y : array-like of shape (n_samples,)
            Outcomes, numeric.
        T : array-like of shape (n_samples,)
            Treatments: 0 and 1, booleans, or two categories, of which the second in alphabetical order is treated.
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
            Covariates.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data or a parameter cannot be used.
        """
        model = _estimator(self.model, "regression", "model")
        reader = clone(model)
        covariates = reader._table(X, reset=True)
        taken = set(_frame.names_of(covariates))
        treatment = _treatment(T, _free_name("treatment", taken))
        outcome = Column(_free_name("outcome", taken), _numbers.target(Y, "Y").reshape(-1))
        check_consistent_length(outcome.values, treatment.values, _frame.first_values(covariates))
        propensity = None if self.propensity is None else _estimator(self.propensity, "classification", "propensity")
        run = CausalRun(
            model=(model._family, model._params_json()),
            propensity=None if propensity is None else (propensity._family, propensity._params_json()),
            method=_text(self.method, "method"),
            scope=_text(self.scope, "scope"),
            treated=_level(self.treated),
            control=_level(self.control),
            n_folds=_whole(self.n_folds, "n_folds"),
            clip=float(self.clip),
            seed=_random.seed_of(self.random_state),
            n_threads=n_threads(self.n_jobs),
        )
        self._effects: Effects = _native.estimate_effects(CausalTable(covariates, treatment, outcome), run)
        self._reader = reader
        about = json.loads(self._effects.describe())
        self.levels_: tuple[str, str] = (about["treated"], about["control"])
        self.naive_difference_: float = about["naive_difference"]
        self.n_folds_: int = about["n_folds"]
        self.row_indices_ = self._effects.row_indices()
        return self

    def effect(self, X: Any) -> Array:
        """Return the effect of each row, given its covariates (CATE).

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._conditional(X, 0.9)["mean"]

    def effect_std(self, X: Any) -> Array:
        """Return the knowledge (epistemic) standard deviation of the effect of each row."""
        return self._conditional(X, 0.9)["std"]

    def effect_interval(self, X: Any, *, alpha: float = 0.1) -> tuple[Array, Array]:
        """Return the interval that contains the effect of each row with probability 1 - alpha.

        Parameters
        ----------
        X : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
        alpha : float, default=0.1
            Probability outside of the interval.

        Returns
        -------
        tuple of ndarray of shape (n_samples,)
            Lower and upper ends.
        """
        found = self._conditional(X, 1.0 - _probability(alpha))
        return found["lower"], found["upper"]

    def ate(self, X: Any = None) -> float:
        """Return the average effect over the rows of the fit, or over the rows of X.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features), default=None
            Other rows. Their average effect is that of the model of `effect`; the scores of the rows of the fit, which
            make the average effect doubly robust, have no part in it.

        Returns
        -------
        float
        """
        return self.ate_inference(X).mean_point

    def ate_interval(self, X: Any = None, *, alpha: float = 0.1) -> tuple[float, float]:
        """Return the interval that contains the average effect with probability 1 - alpha."""
        return self.ate_inference(X).conf_int(alpha)

    def ate_inference(self, X: Any = None) -> EffectInference:
        """Return the average effect with its standard error, draws and intervals.

        Examples
        --------
        >>> import numpy as np
        >>> from softwood.causal import CausalEstimator
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> T = np.arange(200) % 2
        >>> effects = CausalEstimator("tree", "single", propensity="tree").fit(X[:, 0] + 2 * T, T, X)
        >>> found = effects.ate_inference()
        >>> round(found.mean_point, 1), found.stderr > 0
        (2.0, True)
        """
        check_is_fitted(self, "_effects")
        threads = n_threads(self.n_jobs)
        if X is None:
            return _inference(lambda level: self._effects.average(level, threads))
        table = self._reader._table(X)
        return _inference(lambda level: self._effects.average_of(table, level, threads))

    def att_inference(self) -> EffectInference:
        """Return the average effect over the treated rows of the fit."""
        check_is_fitted(self, "_effects")
        threads = n_threads(self.n_jobs)
        return _inference(lambda level: self._effects.on_treated(level, threads))

    def att(self) -> float:
        """Return the average effect over the treated rows of the fit (ATT)."""
        return self.att_inference().mean_point

    def att_interval(self, *, alpha: float = 0.1) -> tuple[float, float]:
        """Return the interval that contains the average effect over the treated rows with probability 1 - alpha."""
        return self.att_inference().conf_int(alpha)

    def overlap(self) -> Overlap:
        """Return propensities, and where the effects rest on extrapolation."""
        check_is_fitted(self, "_effects")
        text, rows = self._effects.overlap()
        about = json.loads(text)
        names = ("share_outside", "n_below", "n_above", "n_clipped", "n_extrapolated", "warnings")
        parts: dict[str, Any] = {**{name: about[name] for name in names}, **rows}
        return Overlap(**parts)

    def policy_value(self, policy: ArrayLike | None = None, *, cost: float = 0.0, alpha: float = 0.1) -> PolicyValue:
        """Return the average outcome if the rows of the fit are treated by a policy.

        Parameters
        ----------
        policy : array-like of bool of shape (n_samples,), default=None
            Whom to treat; None: the rows whose effect exceeds the cost. With cross-fitting that effect is by models
            that have not seen the row, so that the value is not flattered by the choice.
        cost : float, default=0.0
            Cost of one treatment in units of the outcome.
        alpha : float, default=0.1
            Probability outside of the intervals.

        Returns
        -------
        PolicyValue
        """
        check_is_fitted(self, "_effects")
        decisions = None if policy is None else _decisions(policy)[self.row_indices_]
        level = 1.0 - _probability(alpha)
        text, treated = self._effects.policy_value(decisions, float(cost), level, n_threads(self.n_jobs))
        found = json.loads(text)
        names = ("value", "gain", "treat_all", "treat_none", "share_treated")
        return PolicyValue(**{name: found[name] for name in names}, decisions=treated)

    def _conditional(self, X: Any, level: float) -> dict[str, Array]:
        check_is_fitted(self, "_effects")
        return self._effects.conditional(self._reader._table(X), level, n_threads(self.n_jobs))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_effects")


def ihdp_problem(X: Any, T: ArrayLike, surface: str = "linear", *, random_state: Any = 0) -> CausalProblem:
    """Draw outcomes with an average effect of 4 on the covariates and treatments of the IHDP data.

    Parameters
    ----------
    X : array-like or table of shape (n_samples, n_features)
        Numeric covariates.
    T : array-like of shape (n_samples,)
        Treatments, 0 or 1.
    surface : {"linear", "nonlinear"}, default="linear"
        Both are described by Hill (2011). The linear one has the effect 4 for every row; the nonlinear one is an
        exponential without and a line with treatment, with an average effect of 4 over all rows.
    random_state : int, RandomState, Generator or None, default=0

    Returns
    -------
    CausalProblem
    """
    frame: Table = _frame.from_frame(X).columns if _frame.is_frame(X) else _frame.from_array(np.asarray(X))
    found = _native.draw_ihdp(frame, _decisions(T), _text(surface, "surface"), _random.seed_of(random_state))
    return CausalProblem(X=X, **found)


def toy_problem(n_rows: int = 500, *, good_overlap: bool = False, random_state: Any = 0) -> CausalProblem:
    """Draw a problem with one covariate, whose mean differs between the arms.

    Parameters
    ----------
    n_rows : int, default=500
    good_overlap : bool, default=False
        Whether the covariate has means 30 (treated) and 40 (control) instead of 40 and 20.
    random_state : int, RandomState, Generator or None, default=0

    Returns
    -------
    CausalProblem
    """
    found = _native.draw_toy(bool(good_overlap), _whole(n_rows, "n_rows"), _random.seed_of(random_state))
    return CausalProblem(X=found.pop("x")[:, None], **found)


def _inference(estimate: Any) -> EffectInference:
    found = estimate(0.9)
    return EffectInference(found["mean"], found["std"], found["draws"], estimate)


def _estimator(given: Any, task: str, name: str) -> Estimator:
    """Return the estimator, or the one of a family."""
    kind = Regressor if task == "regression" else Classifier
    if isinstance(given, kind):
        return given
    if isinstance(given, str):
        families = sorted(family for family, own in REGISTRY if own == task)
        if given in families:
            return REGISTRY[given, task]()
        raise ValueError(
            f"{name} = {given!r}: expected one of {', '.join(families)}, or a {task} estimator of softwood"
        )
    raise TypeError(
        f"{name} is a {type(given).__name__}: expected a {task} estimator of softwood or the name of a family"
    )


def _treatment(T: Any, name: str) -> Column:
    cells = np.asarray(T)
    if cells.ndim == 2 and cells.shape[1] == 1:
        cells = cells[:, 0]
    if cells.ndim != 1:
        raise ValueError(f"T has the shape {cells.shape}: expected one treatment for each row")
    table = _frame.from_array(cells[:, None])
    if isinstance(table, ArrayTable):
        return Column(name, np.ascontiguousarray(table.values[:, 0]))
    return table[0]._replace(name=name)


def _decisions(values: Any) -> NDArray[np.bool_]:
    cells = np.asarray(values)
    if cells.ndim != 1 or not np.isin(cells, [0, 1]).all():
        raise ValueError("expected one decision for each row: 1 or True to treat, 0 or False not to treat")
    return cells.astype(np.bool_)


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _level(level: Any) -> str | None:
    """Return a level of the treatment as the library writes it."""
    if level is None or isinstance(level, str):
        return level
    number = float(level)
    return str(int(number)) if number.is_integer() else repr(number)


def _probability(alpha: Any) -> float:
    value = float(alpha)
    if not 0.0 < value < 1.0:
        raise ValueError(f"alpha = {alpha!r}: expected a number above 0 and below 1")
    return value


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} = {value!r}: expected a positive whole number")
    return int(value)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is a {type(value).__name__}: expected a text")
    return value
