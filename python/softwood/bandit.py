"""Contextual bandits: Thompson sampling with any model, simulations, and values of policies from logged choices."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softwood import _frame, _native, _random
from softwood._arguments import AgentOptions, ObservedArms, ReplayLog, RewardTable, Table
from softwood._base import Classifier, Estimator, Regressor
from softwood._threads import n_threads

__all__ = ["Choice", "PlayedOutcomes", "ThompsonSampler", "replay", "simulate"]


class Choice(NamedTuple):
    """The arm that an agent chose for a context."""

    arm: str
    """Name of the arm."""
    propensity: float
    """Probability with which this arm was chosen; log it beside the reward."""
    means: dict[str, float]
    """Predicted mean reward of each arm; empty before the first fit."""


class PlayedOutcomes(NamedTuple):
    """Outcomes of the rows that `ThompsonSampler.play` went through."""

    arms: list[str]
    """Chosen arm of each row."""
    rewards: NDArray[np.float64]
    """Reward of the chosen arm."""
    propensities: NDArray[np.float64]
    """Probability with which the arm was chosen."""


class ThompsonSampler:
    """Choose among arms by Thompson sampling: the best arm under one draw of every arm's reward function.

    Parameters
    ----------
    model : str or unfitted softwood estimator, default="vst"
        What predicts rewards: the name of a family, `"linear"` (Bayesian linear regression), `"uniform"` (random
        choices), a regressor, or a classifier for rewards of 0 and 1.
    arms : sequence of str
        Names of the arms.
    pooling : {"per-arm", "arm-column"}, default="per-arm"
        One model per arm, or one model of all arms that has the arm as a column.
    epsilon : float or None, default=None
        If given, take the arm with the best mean instead of a draw, or with this probability a random arm.
    n_initial : int, default=3
        Random choices per arm before models choose.
    refit_growth : float, default=1.3
        The model of an arm is fitted again when the arm has this many times as many rewards, or earlier if new rewards
        are far from its predictions. Linear models are fitted whenever the number of all rewards has grown by a tenth.
    warm_start : bool or None, default=None
        Whether models are trained further between fits from scratch, where the family supports that. None: where
        training further takes a small part of the time of a fit (`vst`, `vsgbm`, `vart`, `soft-tree`).
    random_state : int, RandomState, Generator or None, default=0
        Seed of choices and fits.
    n_jobs : int or None, default=None
        Number of threads, as in the estimators.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood.bandit import ThompsonSampler
    >>> rng = np.random.default_rng(0)
    >>> sampler = ThompsonSampler(model="linear", arms=["low", "high"])
    >>> for _ in range(200):
    ...     x = rng.uniform(-1, 1, size=1)
    ...     choice = sampler.choose(x)
    ...     reward = x[0] if choice.arm == "high" else 0.0  # what the world answers
    ...     sampler.observe(x, choice.arm, reward, propensity=choice.propensity)
    >>> sampler.choose([0.9]).arm, sampler.choose([-0.9]).arm
    ('high', 'low')
    """

    def __init__(
        self,
        model: str | Estimator = "vst",
        arms: Sequence[str] = (),
        *,
        pooling: str = "per-arm",
        epsilon: float | None = None,
        n_initial: int = 3,
        refit_growth: float = 1.3,
        warm_start: bool | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        options = _options(
            model,
            pooling=pooling,
            epsilon=epsilon,
            n_initial=n_initial,
            refit_growth=refit_growth,
            warm_start=warm_start,
        )
        self._agent = _native.Agent(options, _names(arms), _random.seed_of(random_state))
        self.n_jobs = n_jobs

    @property
    def arms(self) -> list[str]:
        """Names of the arms."""
        return self._agent.arms()

    @property
    def n_observed(self) -> int:
        """Number of observed rewards."""
        return self._agent.counts()[0]

    @property
    def n_refits(self) -> int:
        """Number of times that models were fitted."""
        return self._agent.counts()[1]

    def choose(self, context: Any) -> Choice:
        """Choose an arm for one context: a one-dimensional array, a dict, or a table of one row."""
        choices = self.choose_many(_one_row(context))
        if len(choices) != 1:
            raise ValueError(f"context has {len(choices)} rows: expected one; choose_many takes several")
        return choices[0]

    def choose_many(self, contexts: Any) -> list[Choice]:
        """Choose an arm for each row of a table, without a new fit in between."""
        names = self.arms
        arms, propensities, means = self._agent.choose(_table(contexts), n_threads(self.n_jobs))
        rows = [dict(zip(names, row, strict=True)) for row in means.tolist()] if means is not None else [{}] * len(arms)
        chosen = zip(arms.tolist(), propensities.tolist(), rows, strict=True)
        return [Choice(names[arm], propensity, row) for arm, propensity, row in chosen]

    def probabilities(self, contexts: Any) -> NDArray[np.float64]:
        """Return the probability of each arm on each row, of shape (n_rows, n_arms)."""
        return self._agent.probabilities(_table(contexts), n_threads(self.n_jobs))

    def observe(self, context: Any, arm: str, reward: float, *, propensity: float | None = None) -> None:
        """Record the reward of an arm; models are fitted again when it is time.

        If such a fit fails, the reward is recorded, and the next observation tries again.
        """
        propensities = None if propensity is None else [propensity]
        self.observe_many(_one_row(context), [arm], [reward], propensities=propensities)

    def observe_many(
        self,
        contexts: Any,
        arms: Sequence[str],
        rewards: ArrayLike,
        *,
        propensities: ArrayLike | None = None,
    ) -> None:
        """Record the rewards of arms, one for each row of a table."""
        codes = _codes(arms, self.arms)
        unknown = np.full(len(codes), np.nan)
        outcomes = ObservedArms(
            contexts=_table(contexts),
            arms=codes,
            rewards=_vector(rewards, "rewards"),
            propensities=unknown if propensities is None else _vector(propensities, "propensities"),
        )
        self._agent.observe(outcomes, n_threads(self.n_jobs))

    def play(self, contexts: Any, reward: Callable[[int, str], float]) -> PlayedOutcomes:
        """Choose an arm for each row of a table, in order, and learn from the rewards that a function returns.

        The policy is fixed between two fits: the arms of the rows up to the next fit are chosen at once, before their
        rewards are asked for. If `reward` raises an exception, the rewards before it are recorded.

        Parameters
        ----------
        contexts : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
            One row per step.
        reward : callable
            `reward(row, arm)` returns the reward of the arm for the row with this index, counted from 0.

        Returns
        -------
        PlayedOutcomes
            Arm, reward and propensity of each row.

        Examples
        --------
        >>> import numpy as np
        >>> from softwood.bandit import ThompsonSampler
        >>> x = np.random.default_rng(0).uniform(-1, 1, size=(200, 1))
        >>> sampler = ThompsonSampler("linear", arms=["stay", "go"])
        >>> outcomes = sampler.play(x, lambda row, arm: x[row, 0] if arm == "go" else 0.0)
        >>> bool(outcomes.rewards.sum() > 30)
        True
        """
        if isinstance(contexts, dict):
            raise ValueError("contexts is a dict: expected a table; choose takes one context")
        table = _table(contexts)
        n_rows = _frame.n_rows(table)
        names = self.arms
        arms = np.zeros(n_rows, dtype=np.uint32)
        rewards = np.zeros(n_rows)
        propensities = np.zeros(n_rows)
        first = 0
        while first < n_rows:
            last = min(n_rows, first + self._agent.counts()[2])
            part = slice(first, last)
            chosen, probabilities, _ = self._agent.choose(_frame.rows(table, part), n_threads(self.n_jobs))
            arms[part] = chosen
            propensities[part] = probabilities
            row = first
            try:
                for row in range(first, last):
                    rewards[row] = self._checked_reward(row, reward(row, names[arms[row]]))
            except BaseException:
                self._observe_rows(table, slice(first, row), arms, rewards, propensities)
                raise
            self._observe_rows(table, part, arms, rewards, propensities)
            first = last
        return PlayedOutcomes([names[arm] for arm in arms], rewards, propensities)

    @staticmethod
    def _checked_reward(row: int, reward: Any) -> float:
        value = float(reward)
        if not np.isfinite(value):
            raise ValueError(f"row {row}: the reward {value} is not a finite number")
        return value

    def _observe_rows(
        self,
        table: Table,
        part: slice,
        arms: NDArray[np.uint32],
        rewards: NDArray[np.float64],
        propensities: NDArray[np.float64],
    ) -> None:
        """Record the rewards of a part of the rows."""
        outcomes = ObservedArms(
            contexts=_frame.rows(table, part),
            arms=arms[part],
            rewards=rewards[part],
            propensities=propensities[part],
        )
        self._agent.observe(outcomes, n_threads(self.n_jobs))

    def refit(self) -> None:
        """Fit the models to all rewards now."""
        self._agent.refit(n_threads(self.n_jobs))

    @property
    def log(self) -> tuple[list[str], NDArray[np.float64]]:
        """Arm and propensity of each observation; NaN where the propensity is not known."""
        names = self.arms
        arms, propensities = self._agent.log()
        return [names[arm] for arm in arms.tolist()], propensities

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sampler, with its rewards and models, to a file."""
        self._agent.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, n_jobs: int | None = None) -> ThompsonSampler:
        """Read a sampler from a file; it continues as the saved one would."""
        sampler = cls.__new__(cls)
        sampler._agent = _native.Agent.load(path)
        sampler.n_jobs = n_jobs
        return sampler


def simulate(
    contexts: Any,
    rewards: ArrayLike,
    model: str | Estimator = "vst",
    *,
    arms: Sequence[str] | None = None,
    n_seeds: int = 5,
    n_steps: int | None = None,
    pooling: str = "per-arm",
    epsilon: float | None = None,
    n_initial: int = 3,
    refit_growth: float = 1.3,
    warm_start: bool | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """Run an agent on contexts whose rewards are known for every arm, and sum its regret.

    Parameters
    ----------
    contexts : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
        One row per step; each seed draws its own order.
    rewards : array-like of shape (n_samples, n_arms)
        The reward of each arm.
    model, pooling, epsilon, n_initial, refit_growth, warm_start
        As in `ThompsonSampler`.
    arms : sequence of str or None, default=None
        Names of the arms.
    n_seeds : int, default=5
        Number of runs.
    n_steps : int or None, default=None
        Number of steps of a run; None: all rows.
    random_state : int, RandomState, Generator or None, default=0
        First seed.
    n_jobs : int or None, default=None
        Number of threads; runs are side by side.

    Returns
    -------
    dict
        Mean and standard deviation over the seeds of the cumulative regret (`mean`, `sd`), that of random choices
        (`uniform_regret`), simple regret (`simple_mean`: mean regret of the last steps), shares of the arms, and the
        curve of the regret (`curve_steps`, `curve_mean`, `curve_sd`).

    Examples
    --------
    >>> import numpy as np
    >>> from softwood.bandit import simulate
    >>> x = np.random.default_rng(0).uniform(-1, 1, size=(300, 1))
    >>> result = simulate(x, np.hstack([0 * x, x]), "linear", n_seeds=2)
    >>> result["mean"] < 0.5 * result["uniform_regret"]
    True
    """
    values = np.asarray(rewards, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"rewards has {values.ndim} dimensions: expected (n_samples, n_arms)")
    options = _options(
        model,
        pooling=pooling,
        epsilon=epsilon,
        n_initial=n_initial,
        refit_growth=refit_growth,
        warm_start=warm_start,
    )
    names = [f"arm {at}" for at in range(values.shape[1])] if arms is None else _names(arms)
    table = RewardTable(_table(contexts), np.ascontiguousarray(values).ravel(), names, n_steps)
    first = _random.seed_of(random_state)
    seeds = [(first + at) % 2**64 for at in range(n_seeds)]
    result: dict[str, Any] = json.loads(_native.simulate_bandit(table, options, seeds, n_threads(n_jobs)))
    return result


def replay(
    contexts: Any,
    arms: ArrayLike,
    rewards: ArrayLike,
    propensities: ArrayLike,
    policy: ArrayLike,
    *,
    model: str | Regressor | None = "tree",
    n_folds: int = 5,
    level: float = 0.9,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """Estimate the mean reward of a policy from logged choices of another one.

    Parameters
    ----------
    contexts : array-like, pandas, polars or pyarrow table of shape (n_samples, n_features)
        Logged contexts.
    arms : array-like of int of shape (n_samples,)
        Index of the chosen arm of each row.
    rewards, propensities : array-like of shape (n_samples,)
        Rewards, and the probabilities with which the arms were chosen.
    policy : array-like of shape (n_samples, n_arms)
        Probability of each arm under the policy to evaluate; a row of 0 and a single 1 for a fixed choice.
    model : str, regressor or None, default="tree"
        Family of the reward models of the doubly robust estimate, which are fitted to the other folds; None: no such
        estimate.
    n_folds : int, default=5
        Number of folds.
    level : float, default=0.9
        Probability of the intervals.
    random_state, n_jobs
        As in `ThompsonSampler`.

    Returns
    -------
    dict
        `inverse_propensity`, `self_normalised`, `doubly_robust` (or None) and `logging` (the mean logged reward), each
        with `value`, `std_error`, `lower` and `upper`; `effective_rows`, `mean_weight` (near 1 if the log takes every
        arm that the policy takes) and `max_weight` of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from softwood.bandit import replay
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, size=(500, 1))
    >>> arms = rng.integers(2, size=500)  # logged: each arm with probability 0.5
    >>> rewards = np.where(arms == 1, x[:, 0], 0.0)
    >>> best = np.stack([x[:, 0] <= 0, x[:, 0] > 0], axis=1).astype(float)
    >>> values = replay(x, arms, rewards, np.full(500, 0.5), best)
    >>> abs(values["doubly_robust"]["value"] - 0.25) < 0.05
    True
    """
    probabilities = np.asarray(policy, dtype=np.float64)
    if probabilities.ndim != 2:
        raise ValueError(f"policy has {probabilities.ndim} dimensions: expected (n_samples, n_arms)")
    log = ReplayLog(
        contexts=_table(contexts),
        n_arms=probabilities.shape[1],
        arms=_indices(arms),
        rewards=_vector(rewards, "rewards"),
        propensities=_vector(propensities, "propensities"),
        policy=np.ascontiguousarray(probabilities).ravel(),
        model=None if model is None else _family(model),
        n_folds=n_folds,
        level=level,
        seed=_random.seed_of(random_state),
        n_threads=n_threads(n_jobs),
    )
    values: dict[str, Any] = json.loads(_native.replay_bandit(log))
    return values


def _options(
    model: Any,
    *,
    pooling: str,
    epsilon: float | None,
    n_initial: int,
    refit_growth: float,
    warm_start: bool | None,
) -> AgentOptions:
    if pooling not in {"per-arm", "arm-column"}:
        raise ValueError(f"pooling = {pooling!r}: expected 'per-arm' or 'arm-column'")
    agent, params = (model, None) if isinstance(model, str) else _family(model)
    return AgentOptions(
        agent=agent,
        params=params,
        epsilon=epsilon,
        arm_column=pooling == "arm-column",
        classify=isinstance(model, Classifier),
        n_initial=n_initial,
        refit_growth=refit_growth,
        warm_start=warm_start,
    )


def _family(model: Any) -> tuple[str, str]:
    """Return the family of a model and its parameters as JSON."""
    if isinstance(model, str):
        return model, "{}"
    if not isinstance(model, Estimator):
        raise TypeError(f"model is a {type(model).__name__}: expected the name of a family or an estimator of softwood")
    return model._family, model._params_json()


def _names(arms: Any) -> list[str]:
    if isinstance(arms, str):
        raise TypeError(f"arms is the text {arms!r}: expected a list of names")
    return [str(arm) for arm in arms]


def _codes(arms: Sequence[str], names: list[str]) -> NDArray[np.uint32]:
    if isinstance(arms, str):
        raise TypeError(f"arms is the text {arms!r}: expected a list of names")
    for arm in arms:
        if arm not in names:
            raise ValueError(f"there is no arm {arm!r}: the arms are {', '.join(names)}")
    return np.array([names.index(arm) for arm in arms], dtype=np.uint32)


def _indices(arms: Any) -> NDArray[np.uint32]:
    indices = np.asarray(arms)
    is_array = indices.ndim == 1 and indices.dtype.kind in "iu"
    is_valid = is_array and (indices.size == 0 or (indices.min() >= 0 and indices.max() < 2**32))
    if not is_valid:
        raise ValueError("arms: expected a one-dimensional array of whole numbers, the first arm being 0")
    return indices.astype(np.uint32)


def _vector(values: Any, name: str) -> NDArray[np.float64]:
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1:
        raise ValueError(f"{name} has {vector.ndim} dimensions: expected one")
    return np.ascontiguousarray(vector)


def _one_row(context: Any) -> Any:
    """Return a table of one row from a one-dimensional array; a dict or a table stays as it is."""
    if isinstance(context, dict) or _frame.is_frame(context):
        return context
    array = np.asarray(context)
    return array[None, :] if array.ndim == 1 else array


def _table(contexts: Any) -> Table:
    """Read a table, or the only row of one from a dict of its cells."""
    if isinstance(contexts, dict):
        cells = np.array([list(contexts.values())], dtype=object)
        return _frame.renamed(_frame.from_array(cells), [str(name) for name in contexts])
    if _frame.is_frame(contexts):
        return _frame.from_frame(contexts).columns
    array = np.asarray(_frame.plain_array(contexts))
    if array.ndim != 2:
        raise ValueError(f"contexts has {array.ndim} dimensions: expected (n_rows, n_features)")
    return _frame.from_array(array)
