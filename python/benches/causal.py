"""Average effects on the IHDP surfaces with known truth, beside Salazar's VaRT and BART.

Every estimation adds one line to `target/bench/causal.jsonl`. One that has a line is not repeated, so that a run can be
interrupted and resumed, or be done in parts:

    python -m benches.causal                            # all columns, with the draws of each
    python -m benches.causal --columns sglb,sglb-single --draws 20
    python -m benches.causal --render

The covariates are in `causal/ihdp.parquet` of `SOFTWOOD_DATA` (or `--data`). The results are written into
docs/experiments/causal.md.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benches import arguments, report
from benches.causal_worker import ONE_VST

LINES = report.SCRATCH / "causal.jsonl"
PAGE = report.EXPERIMENTS / "causal.md"
SURFACES = ("linear", "nonlinear")

PUBLISHED = {
    "linear": {"VaRT": (3.86, 0.12), "BART": (3.6, 0.6)},
    "nonlinear": {"VaRT": (3.80, 0.19), "BART": (2.9, 0.8)},
}
"""Mean and standard deviation of the estimated average effect over five runs; the truth is 4."""

LINEAR_VST = {"max_depth": 0, "leaf_model": "linear", "scaling": "standard", "rotation": "none", "squares": False}


@dataclass(frozen=True)
class Column:
    """A row of the report: a model of the outcome with its parameters, a method, and the number of draws."""

    model: str
    params: dict[str, Any]
    method: str
    n_draws: int


COLUMNS = {
    "sglb": Column("SGLBRegressor", {}, "doubly-robust", 10),
    "sglb-single": Column("SGLBRegressor", {}, "single", 10),
    "sglb-per-arm": Column("SGLBRegressor", {}, "per-arm", 10),
    "vst-one": Column("VSTRegressor", ONE_VST, "doubly-robust", 10),
    "vst-one-single": Column("VSTRegressor", ONE_VST, "single", 10),
    "vst-one-per-arm": Column("VSTRegressor", ONE_VST, "per-arm", 10),
    "vst": Column("VSTRegressor", {}, "doubly-robust", 1),
    "vst-single": Column("VSTRegressor", {}, "single", 1),
    "vart": Column("VaRTRegressor", {}, "doubly-robust", 1),
    "vart-single": Column("VaRTRegressor", {}, "single", 1),
    "vsgbm-single": Column("VSGBMRegressor", {}, "single", 1),
}


@dataclass(frozen=True)
class Job:
    """An estimation: a column of the report on one draw of a surface."""

    column: str
    surface: str
    draw: int


@cache
def covariates(data: Path) -> tuple[Any, Any]:
    """Return covariates and treatments of the IHDP data."""
    import pandas as pd

    frame = pd.read_parquet(data / "causal" / "ihdp.parquet")
    return frame.drop(columns=["treatment", "target"]), frame["treatment"].to_numpy()


def measure(data: Path, job: Job) -> dict[str, Any]:
    """Estimate the effects of one job."""
    import numpy as np

    import softwood
    from softwood.causal import CausalEstimator, ihdp_problem

    features, treatment = covariates(data)
    problem = ihdp_problem(features, treatment, job.surface, random_state=job.draw)
    column = COLUMNS[job.column]
    model = getattr(softwood, column.model)(**column.params)
    start = time.process_time()
    effects = CausalEstimator(model, column.method, random_state=job.draw, n_jobs=1)
    found = effects.fit(problem.outcome, treatment, features).ate_inference()
    seconds = time.process_time() - start
    lower, upper = found.conf_int(0.1)
    on_treated = effects.att_inference()
    lower_treated, upper_treated = on_treated.conf_int(0.1)
    rows = effects.effect(features)
    lower_rows, upper_rows = effects.effect_interval(features, alpha=0.1)
    truth = problem.true_cate
    return {
        "column": job.column,
        "surface": job.surface,
        "draw": job.draw,
        "ate": found.mean_point,
        "stderr": found.stderr,
        "covered": bool(lower <= problem.true_effect <= upper),
        "att_error": on_treated.mean_point - problem.true_effect_on_treated,
        "att_covered": bool(lower_treated <= problem.true_effect_on_treated <= upper_treated),
        "naive": effects.naive_difference_,
        "pehe": float(np.sqrt(np.mean((rows - truth) ** 2))),
        "pehe_constant": float(truth.std()),
        "cate_coverage": float(np.mean((lower_rows <= truth) & (truth <= upper_rows))),
        "seconds": seconds,
    }


def run(args: argparse.Namespace) -> None:
    """Measure what has no line yet, on several processes."""
    LINES.parent.mkdir(parents=True, exist_ok=True)
    done = {Job(line["column"], line["surface"], line["draw"]) for line in report.read_lines(LINES)}
    jobs = [
        Job(name, surface, draw)
        for name in args.columns
        for draw in range(args.draws or COLUMNS[name].n_draws)
        for surface in SURFACES
    ]
    with ProcessPoolExecutor(args.processes) as pool, LINES.open("a") as file:
        for future in as_completed([pool.submit(measure, args.data, job) for job in jobs if job not in done]):
            file.write(json.dumps(future.result()) + "\n")
            file.flush()


def row(name: str, lines: list[dict[str, Any]]) -> list[str]:
    """Format the figures of a column on a surface."""
    effects = [line["ate"] for line in lines]
    spread = stdev(effects) if len(effects) > 1 else 0.0
    column = COLUMNS[name]
    return [
        f"`{lines[0]['model']}`{', one fit of depth 2' if column.params else ''}",
        column.method,
        str(len(lines)),
        f"{fmean(effects):.2f} ± {spread:.2f}",
        f"{abs(fmean(effects) - 4):.2f}",
        f"{fmean(abs(effect - 4) for effect in effects):.2f}",
        f"{100 * fmean(line['covered'] for line in lines):.0f}%",
        f"{fmean(line['stderr'] for line in lines):.2f}",
        f"{fmean(abs(line['att_error']) for line in lines):.2f}",
        f"{100 * fmean(line['att_covered'] for line in lines):.0f}%",
        f"{fmean(line['pehe'] for line in lines):.2f}",
        f"{100 * fmean(line['cate_coverage'] for line in lines):.0f}%",
        f"{fmean(line['seconds'] for line in lines):.1f}",
    ]


FAMILIES = {"VSTRegressor": "vst", "VaRTRegressor": "vart", "VSGBMRegressor": "vsgbm", "SGLBRegressor": "sglb"}
HEADER = [
    "model",
    "method",
    "draws",
    "ATE",
    "error of the mean",
    "mean error",
    "coverage of 90%",
    "standard error",
    "mean error of ATT",
    "coverage of ATT",
    "PEHE",
    "coverage of CATE",
    "processor s",
]


def surface_table(surface: str) -> str:
    """Compare the columns on a surface with the paper."""
    rows = []
    for name, (mean, sd) in PUBLISHED[surface].items():
        figures = ["", "5", f"{mean:.2f} ± {sd:.2f}", f"{abs(mean - 4):.2f}"]
        rows.append([f"{name} (paper)", *figures, *[""] * (len(HEADER) - 5)])
    for name, column in COLUMNS.items():
        lines = [line for line in report.read_lines(LINES) if (line["column"], line["surface"]) == (name, surface)]
        if lines:
            lines[0]["model"] = FAMILIES[column.model]
            rows.append(row(name, lines))
    naive = {line["draw"]: line for line in report.read_lines(LINES) if line["surface"] == surface}.values()
    error = fmean(abs(line["naive"] - 4) for line in naive)
    spread = fmean(line["pehe_constant"] for line in naive)
    return (
        f"### {surface.capitalize()} surface\n\n{report.table(HEADER, rows)}\n\n"
        f"The unadjusted difference of the arms has a mean error of {error:.2f} ({len(naive)} draws); effects of rows "
        f"have a standard deviation of {spread:.2f}."
    )


def render() -> None:
    """Write the tables into the page."""
    report.write("table", "\n\n".join(surface_table(surface) for surface in SURFACES), PAGE)


def main() -> None:
    """Run the benchmark."""
    parser = arguments.parser(__doc__)
    arguments.add_data(parser)
    parser.add_argument("--columns", type=lambda text: text.split(","), default=list(COLUMNS))
    parser.add_argument("--draws", type=int, help="draws of each surface, instead of those of each column")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if not args.render:
        run(args)
    render()


if __name__ == "__main__":
    main()
