"""Measures jobs of `benches.causal_peers`: the effects that one library estimates on one drawn problem."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benches import report, workers
from benches.measure import timed

Array = NDArray[np.float64]
ALPHA = 0.1
ONE_VST = {"max_depth": 2, "scaling": "standard", "rotation": "none", "squares": False, "n_fits": 1}
"""One fit of depth 2 without selection of encodings, as in `benches.causal`."""
N_BURN_IN, N_DRAWS = 250, 250


@dataclass(frozen=True)
class Problem:
    """Covariates, treatments (0 or 1), outcomes, and the true effect of each row."""

    X: Array
    treatment: Array
    outcome: Array
    true_cate: Array

    @classmethod
    def read(cls, path: Path) -> Problem:
        """Read a drawn problem."""
        with np.load(path) as file:
            return cls(**file)


def file_of(surface: str, draw: int) -> Path:
    """Return the file of a drawn problem."""
    return report.SCRATCH / "ihdp" / f"{surface}-{draw}.npz"


@dataclass(frozen=True)
class Effects:
    """An average effect and the effects of the rows, with their 90% intervals."""

    ate: float
    ate_interval: tuple[float, float]
    cate: Array
    cate_interval: tuple[Array, Array]


Estimator = Callable[[Problem, int], dict[str, Effects]]


def softwood(model: str, params: dict[str, Any], problem: Problem, seed: int) -> dict[str, Effects]:
    """Estimate by Softwood's doubly robust method."""
    import softwood as sw
    from softwood.causal import CausalEstimator

    estimator = CausalEstimator(getattr(sw, model)(**params), "doubly-robust", random_state=seed, n_jobs=1)
    estimator.fit(problem.outcome, problem.treatment, problem.X)
    found = estimator.ate_inference()
    rows = estimator.effect(problem.X), estimator.effect_interval(problem.X, alpha=ALPHA)
    return {"": Effects(found.mean_point, found.conf_int(ALPHA), *rows)}


def econml(problem: Problem, seed: int) -> dict[str, Effects]:
    """Estimate by EconML's causal forest: means of the rows' effects, and its doubly robust average (`ate_`)."""
    from econml.dml import CausalForestDML

    forest = CausalForestDML(discrete_treatment=True, n_jobs=1, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        forest.fit(problem.outcome, problem.treatment, X=problem.X)
    rows = forest.effect(problem.X), forest.effect_interval(problem.X, alpha=ALPHA)
    lower, upper = forest.ate_interval(problem.X, alpha=ALPHA)
    robust = forest.ate__inference()
    robust_lower, robust_upper = (float(np.ravel(end)[0]) for end in robust.conf_int(alpha=ALPHA))
    return {
        "": Effects(float(forest.ate(problem.X)), (float(lower), float(upper)), *rows),
        "-robust": Effects(float(np.ravel(robust.point_estimate)[0]), (robust_lower, robust_upper), *rows),
    }


def stochtree(problem: Problem, seed: int) -> dict[str, Effects]:
    """Estimate by stochtree's Bayesian causal forest, which fits the propensities itself."""
    from stochtree import BCFModel

    model = BCFModel()
    model.sample(
        X_train=problem.X,
        Z_train=problem.treatment,
        y_train=problem.outcome,
        num_gfr=10,
        num_burnin=N_BURN_IN,
        num_mcmc=N_DRAWS,
        general_params={"random_seed": seed, "num_threads": 1},
    )
    draws = np.asarray(model.predict(problem.X, problem.treatment, terms="cate"))
    averages = draws.mean(axis=0)
    ends = (ALPHA / 2, 1 - ALPHA / 2)
    lower, upper = np.quantile(averages, ends)
    rows = np.quantile(draws, ends, axis=1)
    return {"": Effects(float(averages.mean()), (lower, upper), draws.mean(axis=1), (rows[0], rows[1]))}


ESTIMATORS: dict[str, tuple[str, Estimator]] = {
    "sglb": ("softwood", partial(softwood, "SGLBRegressor", {})),
    "vst-one": ("softwood", partial(softwood, "VSTRegressor", ONE_VST)),
    "vst": ("softwood", partial(softwood, "VSTRegressor", {})),
    "econml": ("econml", econml),
    "stochtree": ("stochtree", stochtree),
}
"""Library and function of each estimator."""


def scores(effects: Effects, truth: Array) -> dict[str, Any]:
    """Compare the effects with the true ones."""
    (lower, upper), (lower_rows, upper_rows) = effects.ate_interval, effects.cate_interval
    target = float(truth.mean())
    return {
        "ate_error": effects.ate - target,
        "covered": bool(lower <= target <= upper),
        "width": float(upper - lower),
        "pehe": float(np.sqrt(np.mean((effects.cate - truth) ** 2))),
        "cate_coverage": float(np.mean((lower_rows <= truth) & (truth <= upper_rows))),
        "cate_width": float(np.mean(upper_rows - lower_rows)),
    }


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Estimate the effects of a job."""
    problem = Problem.read(file_of(job["surface"], job["draw"]))
    library, estimate = ESTIMATORS[job["model"]]
    version = workers.imported(library)
    found, seconds = timed(lambda: estimate(problem, job["draw"]))
    results = {name: scores(effects, problem.true_cate) for name, effects in found.items()}
    return {"results": results, "seconds": seconds, "version": version}


if __name__ == "__main__":
    workers.serve(measure)
