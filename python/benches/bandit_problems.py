"""Public bandit problems drawn from a seed, with the definitions of `softwood bandit`, for agents of any library.

They are other draws than those of the program: arms, order and noise come from NumPy's generator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Random = np.random.Generator

N_PORTFOLIOS, PORTFOLIO_NOISE = 8, 0.01
N_TILES, TILE_HALF_WIDTH, TILE_STEEPNESS, TILE_NOISE = 20, 0.05, 2900.0, 0.01
SAFE_REWARD, POISON_REWARD, MUSHROOM_UNIT = 5.0, -35.0, 20.0
N_JOKES = 8


@dataclass(frozen=True)
class Problem:
    """Contexts (a frame), and paid and expected rewards of every arm, (n_steps, n_arms)."""

    contexts: Any
    rewards: Array
    expected: Array

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return int(self.rewards.shape[1])

    def regrets(self) -> Array:
        """Return the regret of every arm at every step."""
        best: Array = self.expected.max(axis=1, keepdims=True)
        return best - self.expected


def financial(table: Any, rows: NDArray[np.int64], random: Random) -> Problem:
    """Draw portfolios with weights of length 1 on standardised columns."""
    columns = (table - table.mean()) / table.std(ddof=0)
    weights = random.uniform(-1, 1, (table.shape[1], N_PORTFOLIOS))
    expected = columns.to_numpy(float)[rows] @ (weights / np.linalg.norm(weights, axis=0))
    noise = PORTFOLIO_NOISE * np.arange(1, N_PORTFOLIOS + 1) * random.standard_normal(expected.shape)
    return Problem(columns.iloc[rows].reset_index(drop=True), expected + noise, expected)


def mushroom(table: Any, rows: NDArray[np.int64], random: Random) -> Problem:
    """Pass, or eat: a poisonous mushroom harms in half of the cases."""
    chosen = table.iloc[rows].reset_index(drop=True)
    is_edible = chosen["target"].to_numpy() == 0
    harms = ~is_edible & (random.uniform(size=len(rows)) < 0.5)
    paid = np.where(harms, POISON_REWARD, SAFE_REWARD) / MUSHROOM_UNIT
    mean = np.where(is_edible, SAFE_REWARD, (SAFE_REWARD + POISON_REWARD) / 2) / MUSHROOM_UNIT
    nothing = np.zeros(len(rows))
    return Problem(chosen.drop(columns="target"), np.stack([nothing, paid], axis=1), np.stack([nothing, mean], axis=1))


def jester(table: Any, rows: NDArray[np.int64], random: Random) -> Problem:
    """Eight random jokes are the arms, the ratings of the others the context."""
    chosen = table.iloc[rows].reset_index(drop=True)
    jokes = random.permutation(table.columns)[:N_JOKES]
    ratings = chosen[jokes].to_numpy(float)
    return Problem(chosen.drop(columns=jokes), ratings, ratings)


def exploration(n_steps: int, random: Random) -> Problem:
    """Contexts from -1 to 1; each arm pays on its own twentieth of the interval."""
    import pandas as pd
    from scipy.special import expit

    x = random.uniform(-1, 1, n_steps)
    centres = -1 + (2 * np.arange(N_TILES) + 1) / N_TILES
    offsets = x[:, None] - centres
    expected = expit(TILE_STEEPNESS * (offsets + TILE_HALF_WIDTH)) - expit(TILE_STEEPNESS * (offsets - TILE_HALF_WIDTH))
    rewards = expected + TILE_NOISE * random.standard_normal(expected.shape)
    return Problem(pd.DataFrame({"x": x}), rewards, expected)


FROM_TABLES: dict[str, Callable[[Any, NDArray[np.int64], Random], Problem]] = {
    "financial": financial,
    "mushroom": mushroom,
    "jester": jester,
}
PROBLEMS = ("financial", "exploration", "mushroom", "jester")


def draw(name: str, n_steps: int, seed: int, data: Path) -> Problem:
    """Draw the first steps of a problem."""
    random = np.random.default_rng([seed, PROBLEMS.index(name)])
    if name == "exploration":
        return exploration(n_steps, random)
    import pandas as pd

    table = pd.read_parquet(data / "bandit" / f"{name}.parquet")
    return FROM_TABLES[name](table, random.permutation(len(table))[:n_steps], random)
