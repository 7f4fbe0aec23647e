"""Arguments of the native module, with named fields. The native module reads them by these names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from softwood._callbacks import Dispatcher
    from softwood._native import Model


class Column(NamedTuple):
    """A column of a table.

    A numeric column has no levels, and NaN for missing cells. A categorical column has codes into its levels, and
    `_frame.MISSING` for missing cells.
    """

    name: str
    values: NDArray[np.float64] | NDArray[np.uint32]
    levels: list[str] | None = None


@dataclass(frozen=True)
class ArrayTable:
    """A table of numeric columns that share one array, (n_rows, n_columns)."""

    names: list[str]
    values: NDArray[np.float64]


Table = list[Column] | ArrayTable


@dataclass(frozen=True)
class LabelledTable:
    """Features with a target."""

    features: Table
    target: Column
    weights: NDArray[np.float64] | None
    """Row weights."""
    labels: str
    """Type of the class labels: "text", "number" or "boolean"."""
    label_dtype: str | None
    """NumPy type of the class labels."""
    is_named: bool
    """Whether the features have column names."""


@dataclass(frozen=True)
class FitRun:
    """Everything that a fit needs besides parameters and training data."""

    seed: int
    n_threads: int
    """Number of threads; 0: one per core."""
    validation: LabelledTable | None
    """Validation set."""
    warm_start: Model | None
    """A fitted model to train further."""
    time_limit: float | None
    """Seconds after which the fit stops and keeps the best model so far."""
    callback: Dispatcher | None
    """Receives every event and returns whether to stop."""
    with_snapshots: bool
    """Whether some callback may want a model of the present state of the fit."""


@dataclass(frozen=True)
class EvaluationRun:
    """How models are evaluated."""

    models: list[tuple[str, str]]
    """Family and parameters (JSON) of each model."""
    protocol: str
    """`holdout:F`, `cv:K` or `paper:F,K`; with `splits`, a name for the report."""
    splits: list[tuple[list[int], list[int], list[int]]] | None
    """Rows of the training, validation and test sets of each fold, instead of the protocol."""
    seed: int
    n_threads: int
    """Number of threads; 0: one per core."""


@dataclass(frozen=True)
class ImportanceRun:
    """How columns are permuted for their importances."""

    reference: Table | None
    """Rows whose cells replace those of the permuted column; without them the column is permuted among its own rows."""
    n_repeats: int
    """Permutations of each column."""
    seed: int
    n_threads: int
    """Number of threads; 0: one per core."""


@dataclass(frozen=True)
class AgentOptions:
    """Settings of a bandit agent."""

    agent: str
    """`uniform`, `linear` or a model family."""
    params: str | None
    """Parameters of the family (JSON)."""
    epsilon: float | None
    """Probability of a random arm of a greedy agent; None for Thompson sampling."""
    arm_column: bool
    """Whether one model has the arm as a column."""
    classify: bool
    """Whether rewards are 0 or 1 and a classifier predicts them."""
    n_initial: int
    refit_growth: float
    warm_start: bool | None


@dataclass(frozen=True)
class ObservedArms:
    """Chosen arms and their rewards, one for each context."""

    contexts: Table
    arms: NDArray[np.uint32]
    rewards: NDArray[np.float64]
    propensities: NDArray[np.float64]
    """NaN where it is not known."""


@dataclass(frozen=True)
class RewardTable:
    """Contexts with the rewards of all arms."""

    contexts: Table
    rewards: NDArray[np.float64]
    """Row-major, rows x arms."""
    arms: list[str]
    n_steps: int | None
    """Number of steps of a run; None: all rows."""


@dataclass(frozen=True)
class ReplayLog:
    """Logged choices and the policy to evaluate."""

    contexts: Table
    n_arms: int
    arms: NDArray[np.uint32]
    rewards: NDArray[np.float64]
    propensities: NDArray[np.float64]
    policy: NDArray[np.float64]
    """Probabilities of the policy, row-major, rows x arms."""
    model: tuple[str, str] | None
    """Family and parameters (JSON) of the models of the rewards."""
    n_folds: int
    level: float
    seed: int
    n_threads: int


@dataclass(frozen=True)
class RowSelectionRun:
    """Which rows of a pool are chosen."""

    n: int
    criterion: str
    seed: int
    n_threads: int
    """Number of threads; 0: one per core."""


@dataclass(frozen=True)
class SuggestionRun:
    """Which candidates are chosen."""

    n: int
    maximize: bool
    criterion: str
    excluded: list[bool]
    """Whether each candidate may not be chosen; empty if all may."""
    best: float | None
    """Best value so far."""
    class_index: int | None
    """Index of the class whose probability is the target."""
    seed: int
    n_threads: int
    """Number of threads; 0: one per core."""


@dataclass(frozen=True)
class CausalTable:
    """Rows with a treatment and an outcome."""

    covariates: Table
    treatment: Column
    outcome: Column


@dataclass(frozen=True)
class CausalRun:
    """How effects of a treatment are estimated."""

    model: tuple[str, str]
    """Family and parameters (JSON) of the model of the outcome."""
    propensity: tuple[str, str] | None
    """Those of the model of the propensity; None: the default."""
    method: str
    scope: str
    treated: str | None
    """Level of the treatment that counts as treated."""
    control: str | None
    n_folds: int
    clip: float
    seed: int
    n_threads: int
    """Number of threads; 0: one per core."""
