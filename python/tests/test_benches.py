"""The bandit loop in which benchmarks compare agents, with a model that is quick to fit."""

import numpy as np
import pandas as pd
import pytest

from benches import bandit_agents, report, workers
from benches.bandit_agents import PeerAgent, SoftwoodAgent, regret_of
from benches.bandit_problems import Problem, exploration


class Recorder:
    """An agent that records the sizes of its blocks and always takes the first arm."""

    def __init__(self):
        self.sizes = []

    def choose(self, contexts):
        self.sizes.append(len(contexts))
        return np.zeros(len(contexts), dtype=np.int64)

    def observe(self, contexts, arms, rewards):
        pass


def linear_problem(n_steps=300):
    x = np.random.default_rng(0).uniform(-1, 1, n_steps)
    rewards = np.stack([np.zeros(n_steps), x], axis=1)
    return Problem(pd.DataFrame({"x": x}), rewards, rewards)


def least_squares(contexts, rewards, seed):
    """Fit a line; a draw is the line itself."""
    slope, intercept = np.polyfit(contexts["x"], rewards, 1)
    return lambda rows, random: intercept + slope * rows["x"].to_numpy()


def test_blocks_grow_by_the_factor_of_refits():
    agent, problem = Recorder(), linear_problem(100)
    regret = regret_of(agent, problem)
    assert agent.sizes == [6, 10, 10, 10, 11, 15, 19, 19]
    assert regret == pytest.approx(np.maximum(problem.expected[:, 1], 0).sum())


def test_an_agent_learns_with_the_model_of_another_library():
    problem = linear_problem()
    random = problem.regrets().mean(axis=1).sum()
    assert regret_of(PeerAgent(least_squares, 2, seed=0), problem) < 0.4 * random


def test_an_arm_with_few_rewards_varies_as_much_as_all_rewards():
    agent = PeerAgent(least_squares, 2, seed=0)
    contexts = pd.DataFrame({"x": np.zeros(6)})
    agent.observe(contexts, np.array([0, 0, 0, 1, 1, 1]), np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0]))
    draws = agent.samplers[1](pd.DataFrame({"x": np.zeros(4000)}), np.random.default_rng(1))
    # standard errors 0.008 and 0.006
    assert draws.mean() == pytest.approx((3 + 0.5) / 4, abs=0.05)
    assert draws.std() == pytest.approx(0.5, abs=0.04)


def test_softwoods_agent_is_fitted_at_the_end_of_every_block():
    problem = exploration(120, np.random.default_rng(0))
    assert regret_of(SoftwoodAgent("linear", problem.n_arms, seed=0), problem) > 0


def test_categories_become_columns_where_a_library_needs_them():
    contexts = pd.DataFrame({"size": [1.0, 2.0], "color": ["red", None]})
    problem = Problem(contexts, np.zeros((2, 2)), np.zeros((2, 2)))
    assert list(bandit_agents.encoded(problem, "catboost").contexts.columns) == ["size", "color"]
    coded = bandit_agents.encoded(problem, "ngboost").contexts
    assert list(coded.columns) == ["size", "color_missing", "color_red"]


def test_results_are_found_and_sections_replaced(tmp_path):
    lines = tmp_path / "lines.jsonl"
    report.add_line(lines, {"model": "a", "seed": 1, "seconds": 0.5})
    (line,) = report.read_lines(lines)
    assert workers.is_result(line, {"model": "a", "seed": 1})
    assert not workers.is_result(line, {"model": "a", "seed": 2})
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- part -->\nold\n<!-- /part -->\nafter\n")
    report.write("part", "new", page)
    assert page.read_text() == "before\n<!-- part -->\n\nnew\n\n<!-- /part -->\nafter\n"
