"""Bandit agents, simulations, and values of policies from logged choices."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from softwood import TreeClassifier, TreeRegressor
from softwood.bandit import ThompsonSampler, replay, simulate


def play(sampler: ThompsonSampler, n: int, seed: int = 0) -> int:
    """Play n steps in which the sign of x tells the right arm; return the number of right choices."""
    rng = np.random.default_rng(seed)
    n_right = 0
    for _ in range(n):
        x = rng.uniform(-1, 1, size=2)
        choice = sampler.choose(x)
        right = "b" if x[0] > 0 else "a"
        n_right += choice.arm == right
        sampler.observe(x, choice.arm, float(choice.arm == right), propensity=choice.propensity)
    return n_right


@pytest.mark.parametrize("model", ["linear", TreeRegressor(n_members=20), TreeClassifier(n_members=20)])
def test_a_sampler_learns_the_right_arm(model: object) -> None:
    sampler = ThompsonSampler(model=model, arms=["a", "b"], random_state=1)  # type: ignore[arg-type]
    play(sampler, 200)
    assert play(sampler, 50, seed=1) >= 40
    assert sampler.n_observed == 250
    assert sampler.n_refits > 5
    arms, propensities = sampler.log
    assert len(arms) == 250
    assert ((propensities > 0) & (propensities <= 1)).all()


def test_a_saved_or_pickled_sampler_continues(tmp_path: Path) -> None:
    sampler = ThompsonSampler(model="tree", arms=["a", "b"])
    play(sampler, 60)
    sampler.save(tmp_path / "sampler")
    again = ThompsonSampler.load(tmp_path / "sampler")
    copied = pickle.loads(pickle.dumps(sampler))
    rows = np.random.default_rng(3).uniform(-1, 1, size=(30, 2))
    expected = sampler.choose_many(rows)
    assert again.choose_many(rows) == expected
    assert copied.choose_many(rows) == expected
    np.testing.assert_array_equal(again.probabilities(rows), sampler.probabilities(rows))


def test_contexts_may_be_dicts_and_frames() -> None:
    sampler = ThompsonSampler(model="linear", arms=["a", "b"])
    for at in range(40):
        sampler.observe({"x": float(at), "town": "bonn" if at % 2 else "cham"}, "a" if at % 3 else "b", at / 40)
    frame = pd.DataFrame({"town": ["bonn", "new"], "x": [1.0, 2.0]})
    choices = sampler.choose_many(frame)
    assert len(choices) == 2
    assert set(choices[0].means) == {"a", "b"}
    with pytest.raises(ValueError, match="expected one"):
        sampler.choose(frame)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.observe([0.0, 1.0], "c", 1.0), "no arm 'c'"),
        (lambda s: s.observe([0.0, 1.0], "a", float("nan")), "not a finite number"),
        (lambda s: s.observe([0.0, 1.0], "a", 1.0, propensity=2.0), "not a probability"),
        (lambda s: s.observe([0.0], "a", 1.0), "column"),
        (lambda s: s.observe_many([[0.0, 1.0]], ["a", "b"], [1.0]), "one of each"),
    ],
)
def test_invalid_observations_are_refused(call: object, message: str) -> None:
    sampler = ThompsonSampler(model="tree", arms=["a", "b"])
    play(sampler, 10)
    with pytest.raises(ValueError, match=message):
        call(sampler)  # type: ignore[operator]
    assert sampler.n_observed == 10


def test_invalid_settings_are_named() -> None:
    with pytest.raises(ValueError, match="at least two"):
        ThompsonSampler(arms=["a"])
    with pytest.raises(ValueError, match="no agent is called `vxt`"):
        ThompsonSampler(model="vxt", arms=["a", "b"])
    with pytest.raises(ValueError, match="pooling"):
        ThompsonSampler(arms=["a", "b"], pooling="none")
    with pytest.raises(TypeError, match="list of names"):
        ThompsonSampler(arms="ab")
    with pytest.raises(TypeError, match="expected the name of a family"):
        ThompsonSampler(model=object(), arms=["a", "b"])  # type: ignore[arg-type]


def _tables(x: np.ndarray) -> dict[str, object]:
    columns = {"a": x[:, 0], "b": x[:, 1]}
    # a text column whose first cells look like numbers or are missing
    texts = np.array([None] * 10 + ["1"] * 10 + ["a", "b"] * (len(x) // 2 - 10), dtype=object)
    return {
        "array": x,
        "list": x.tolist(),
        "pandas": pd.DataFrame(columns),
        "texts": pd.DataFrame({**columns, "c": texts}),
        "polars": pl.DataFrame(columns),
        "lazy": pl.DataFrame(columns).lazy(),
        "arrow": pa.table(columns),
    }


@pytest.mark.parametrize("kind", ["array", "list", "pandas", "texts", "polars", "lazy", "arrow"])
def test_rewards_may_come_from_a_function(kind: str) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    contexts = _tables(x)[kind]
    asked: list[int] = []

    def reward(row: int, arm: str) -> float:
        asked.append(row)
        return x[row, 0] if arm == "go" else 0.0

    sampler = ThompsonSampler("linear", arms=["stay", "go"], random_state=0)
    outcomes = sampler.play(contexts, reward)
    assert asked == list(range(200))
    assert sampler.n_observed == 200
    assert sampler.log[0] == outcomes.arms
    np.testing.assert_array_equal(sampler.log[1], outcomes.propensities)
    # the best possible mean is 0.25, that of random choices 0
    assert outcomes.rewards[100:].mean() > 0.15

    def fails(row: int, arm: str) -> float:
        if row == 3:
            raise KeyError(arm)
        return 0.0

    with pytest.raises(KeyError):
        sampler.play(contexts, fails)
    assert sampler.n_observed == 203
    with pytest.raises(ValueError, match="row 1: the reward nan"):
        sampler.play(contexts, lambda row, arm: float("nan") if row == 1 else 0.0)
    assert sampler.n_observed == 204
    with pytest.raises(ValueError, match="expected a table"):
        sampler.play({"a": 1.0, "b": 2.0}, reward)


def test_a_simulation_reports_regret() -> None:
    x = np.random.default_rng(0).uniform(-1, 1, size=(200, 1))
    rewards = np.hstack([0 * x, x])
    result = simulate(x, rewards, "tree", n_seeds=2, n_steps=150, arms=["stay", "go"])
    assert result["n_steps"] == 150
    assert len(result["regrets"]) == 2
    assert result["mean"] < 0.6 * result["uniform_regret"]
    again = simulate(x, rewards, "tree", n_seeds=2, n_steps=150, n_jobs=1)
    assert again["regrets"] == result["regrets"]
    with pytest.raises(ValueError, match="dimensions"):
        simulate(x, rewards[:, 0], "tree")


def test_replay_covers_the_value_of_a_policy() -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, size=(2000, 1))
    p_second = 0.3 + 0.4 * (x[:, 0] > 0)
    arms = (rng.uniform(size=2000) < p_second).astype(int)
    propensities = np.where(arms == 1, p_second, 1 - p_second)
    rewards = np.where(arms == 1, x[:, 0], 0.0) + rng.normal(0, 0.3, 2000)
    policy = np.column_stack([x[:, 0] <= 0, x[:, 0] > 0])
    values = replay(x, arms, rewards, propensities, policy)
    for name in ["inverse_propensity", "self_normalised", "doubly_robust"]:
        # the value of the policy on these rows is within four standard errors
        assert abs(values[name]["value"] - 0.25) < 4 * values[name]["std_error"]
    assert values["doubly_robust"]["std_error"] <= values["inverse_propensity"]["std_error"]
    assert 0 < values["effective_rows"] < 2000
    assert replay(x, arms, rewards, propensities, policy, model=None)["doubly_robust"] is None
    with pytest.raises(ValueError, match="row 1"):
        replay(x, arms, rewards, np.zeros(2000), policy)
