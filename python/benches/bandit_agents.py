"""Thompson sampling with models of other libraries, and the loop in which all agents meet a problem.

The agent of another library follows Softwood's: random choices at first, one model per arm, a constant for an arm with
few or equal rewards, and refits of the arms whose rewards have grown. Every step takes one draw of each arm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benches.bandit_problems import Problem

Array = NDArray[np.float64]
Arms = NDArray[np.int64]
Random = np.random.Generator
Sampler = Callable[[Any, Random], Array]
"""A fitted model: contexts to one draw of the mean reward of each row."""
Learner = Callable[[Any, Array, int], Sampler]

N_INITIAL = 3
REFIT_GROWTH = 1.3
MIN_REFIT_INTERVAL = 10
MIN_ROWS = 10
"""Below this number of rewards an arm has a constant reward."""
N_VIRTUAL = 10


class Agent(Protocol):
    """Chooses arms and learns from their rewards."""

    def choose(self, contexts: Any) -> Arms:
        """Choose an arm for each row."""

    def observe(self, contexts: Any, arms: Arms, rewards: Array) -> None:
        """Learn from the rewards of one block of choices; the models are fitted again."""


def regret_of(agent: Agent, problem: Problem) -> float:
    """Run an agent on all steps; return its cumulative regret. The policy is fixed between refits."""
    regrets, n_steps = problem.regrets(), len(problem.contexts)
    total, step, next_refit = 0.0, 0, N_INITIAL * problem.n_arms
    while step < n_steps:
        rows = np.arange(step, min(next_refit, n_steps))
        contexts = problem.contexts.iloc[rows]
        arms = agent.choose(contexts)
        total += float(regrets[rows, arms].sum())
        step = next_refit
        next_refit = max(math.ceil(step * REFIT_GROWTH), step + MIN_REFIT_INTERVAL)
        if step < n_steps:
            agent.observe(contexts, arms, problem.rewards[rows, arms])
    return total


class SoftwoodAgent:
    """Softwood's own agent."""

    def __init__(self, model: str, n_arms: int, seed: int) -> None:
        from softwood.bandit import ThompsonSampler

        self.names = [f"arm {at}" for at in range(n_arms)]
        self.sampler = ThompsonSampler(
            model, self.names, n_initial=N_INITIAL, refit_growth=REFIT_GROWTH, random_state=seed, n_jobs=1
        )

    def choose(self, contexts: Any) -> Arms:
        """Choose an arm for each row."""
        return np.array([self.names.index(choice.arm) for choice in self.sampler.choose_many(contexts)])

    def observe(self, contexts: Any, arms: Arms, rewards: Array) -> None:
        """Record the rewards; the block ends where the sampler fits its models again."""
        n_refits = self.sampler.n_refits
        self.sampler.observe_many(contexts, [self.names[arm] for arm in arms], rewards)
        assert self.sampler.n_refits == n_refits + 1


class PeerAgent:
    """Thompson sampling with one model of another library per arm."""

    def __init__(self, learner: Learner, n_arms: int, seed: int) -> None:
        self.learner, self.n_arms, self.seed = learner, n_arms, seed
        self.random = np.random.default_rng(seed)
        self.contexts: Any = None
        self.arms: Arms = np.zeros(0, dtype=np.int64)
        self.rewards: Array = np.zeros(0)
        self.samplers: dict[int, Sampler] = {}
        self.n_fitted = dict.fromkeys(range(n_arms), -1)

    def choose(self, contexts: Any) -> Arms:
        """Choose the arm with the largest draw for each row; at random before the first fit."""
        if not self.samplers:
            return self.random.integers(self.n_arms, size=len(contexts))
        draws = [self.samplers[arm](contexts, self.random) for arm in range(self.n_arms)]
        return np.asarray(np.argmax(np.stack(draws, axis=1), axis=1))

    def observe(self, contexts: Any, arms: Arms, rewards: Array) -> None:
        """Record the rewards and fit the arms whose rewards have grown."""
        import pandas as pd

        self.contexts = contexts if self.contexts is None else pd.concat([self.contexts, contexts])
        self.arms = np.concatenate([self.arms, arms])
        self.rewards = np.concatenate([self.rewards, rewards])
        for arm in range(self.n_arms):
            rows = np.flatnonzero(self.arms == arm)
            if len(rows) > self.n_fitted[arm] and len(rows) >= REFIT_GROWTH * self.n_fitted[arm]:
                self.samplers[arm] = self.fit(arm, rows)
                self.n_fitted[arm] = len(rows)

    def fit(self, arm: int, rows: Arms) -> Sampler:
        """Fit the model of an arm, or a constant."""
        own = self.rewards[rows]
        if len(own) >= MIN_ROWS and np.ptp(own) > 0:
            return self.learner(self.contexts.iloc[rows], own, 1000 * self.seed + arm)
        mean = (own.sum() + self.rewards.mean()) / (len(own) + 1)
        sd = float(self.rewards.std()) or 1.0
        if len(own) >= MIN_ROWS:
            sd /= math.sqrt(len(own) + 1)
        return lambda contexts, random: mean + sd * random.standard_normal(len(contexts))


def one_member(members: Array, random: Random) -> Array:
    """Return the value of a random member for each row of (n_rows, n_members)."""
    rows = np.arange(len(members))
    return np.asarray(members[rows, random.integers(members.shape[1], size=len(rows))])


def catboost(contexts: Any, rewards: Array, seed: int) -> Sampler:
    """Fit CatBoost's Langevin boosting of mean and scale; a draw is the mean of one of ten virtual members."""
    from catboost import CatBoostRegressor

    def filled(rows: Any) -> Any:
        return rows.assign(**{name: rows[name].astype(object).fillna("missing").astype(str) for name in texts})

    texts = list(contexts.select_dtypes(exclude="number").columns)
    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty",
        posterior_sampling=True,
        cat_features=texts,
        thread_count=1,
        random_seed=seed,
        verbose=False,
        allow_writing_files=False,
    ).fit(filled(contexts), rewards)

    def sample(rows: Any, random: Random) -> Array:
        raw = model.virtual_ensembles_predict(
            filled(rows), prediction_type="VirtEnsembles", virtual_ensembles_count=N_VIRTUAL, thread_count=1
        )
        return one_member(np.asarray(raw)[:, :, 0], random)

    return sample


def ngboost(contexts: Any, rewards: Array, seed: int) -> Sampler:
    """Fit NGBoost's Normal distribution; a draw is one of that distribution, which has no knowledge uncertainty."""
    from ngboost import NGBRegressor

    model = NGBRegressor(random_state=seed, verbose=False).fit(contexts.to_numpy(float), rewards)

    def sample(rows: Any, random: Random) -> Array:
        normal = model.pred_dist(rows.to_numpy(float)).params
        return np.asarray(normal["loc"] + normal["scale"] * random.standard_normal(len(rows)))

    return sample


def bart(contexts: Any, rewards: Array, seed: int) -> Sampler:
    """Fit stochtree's BART with its default chain (10 grow-from-root sweeps, 100 draws); a draw is one of its means."""
    from stochtree import BARTModel

    model = BARTModel()
    model.sample(
        X_train=contexts.to_numpy(float),
        y_train=rewards,
        general_params={"random_seed": seed, "num_threads": 1},
        # the default of five rows is refused for ten rows
        mean_forest_params={"min_samples_leaf": min(5, (len(rewards) - 1) // 2)},
    )

    def sample(rows: Any, random: Random) -> Array:
        return one_member(np.asarray(model.predict(rows.to_numpy(float), terms="y_hat")), random)

    return sample


PEERS: dict[str, tuple[str, Learner]] = {
    "catboost": ("CatBoost", catboost),
    "ngboost": ("NGBoost", ngboost),
    "stochtree": ("BART (stochtree)", bart),
}
"""Title and learner of the agents of other libraries."""
ONE_HOT = ("ngboost", "stochtree")
"""Libraries whose models are given categories as one column per value."""


def encoded(problem: Problem, agent: str) -> Problem:
    """Return the problem with contexts that the library of an agent can read."""
    import pandas as pd

    if agent not in ONE_HOT:
        return problem
    texts = problem.contexts.select_dtypes(exclude="number").fillna("missing")
    numbers = problem.contexts.drop(columns=texts.columns)
    coded = pd.get_dummies(texts, dtype=float) if len(texts.columns) else texts
    return Problem(pd.concat([numbers, coded], axis=1), problem.rewards, problem.expected)
