"""Effects on the IHDP surfaces by Softwood, EconML's causal forest and stochtree's BCF, on the same draws.

    python -m benches.causal_peers                          # measure what has no line yet, and write the page
    python -m benches.causal_peers --models sglb,stochtree --draws 20
    python -m benches.causal_peers --render

Draws have the seeds of `benches.causal`. They are written to `target/bench/ihdp`, where the libraries in other
environments read them; every estimation adds one line to `target/bench/causal_peers.jsonl`. The results are written
into docs/experiments/causal.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from benches import arguments, report, workers
from benches.causal_worker import ESTIMATORS, file_of

LINES = report.SCRATCH / "causal_peers.jsonl"
PAGE = report.EXPERIMENTS / "causal.md"
SURFACES = ("linear", "nonlinear")
N_DRAWS = 10
MODELS = ("sglb", "vst-one", "econml", "stochtree")
"""Models that are run unless others are named."""
ROWS = (
    ("sglb", "", "`sglb`, doubly-robust"),
    ("vst-one", "", "`vst`, one fit of depth 2, doubly-robust"),
    ("vst", "", "`vst`, doubly-robust"),
    ("econml", "", "EconML causal forest, `ate_interval`"),
    ("econml", "-robust", "EconML causal forest, `ate_`"),
    ("stochtree", "", "BCF (stochtree)"),
)
"""Model, result and title of each row of the tables."""


def draw(surface: str, number: int, data: Path) -> None:
    """Draw a problem and write it to its file."""
    import numpy as np

    from benches.causal import covariates
    from softwood.causal import ihdp_problem

    features, treatment = covariates(data)
    problem = ihdp_problem(features, treatment, surface, random_state=number)
    path = file_of(surface, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = {"X": features.to_numpy(float), "treatment": treatment.astype(float)}
    np.savez(path, **cells, outcome=problem.outcome, true_cate=problem.true_cate)


def run(args: argparse.Namespace) -> None:
    """Measure what has no line yet, draw by draw."""
    jobs = []
    for number in range(args.draws):
        for surface in SURFACES:
            draw(surface, number, args.data)
            jobs += [{"surface": surface, "draw": number, "model": model} for model in args.models]

    def python_of(job: workers.Job) -> Path:
        is_ours = ESTIMATORS[job["model"]][0] == "softwood"
        return Path(sys.executable) if is_ours else args.peers / "bin" / "python"

    workers.run(jobs, LINES, "benches.causal_worker", python_of, args.data)


def row(title: str, result: str, lines: list[dict[str, Any]]) -> list[str]:
    """Format the figures of a row."""
    own = [line["results"][result] for line in lines]

    def mean(name: str) -> float:
        return fmean(float(found[name]) for found in own)

    return [
        title,
        str(len(own)),
        f"{fmean(abs(found['ate_error']) for found in own):.2f}",
        f"{mean('ate_error'):+.2f}",
        f"{sum(found['covered'] for found in own)} of {len(own)}",
        f"{mean('width'):.2f}",
        f"{mean('pehe'):.2f}",
        f"{100 * mean('cate_coverage'):.0f}%",
        f"{mean('cate_width'):.1f}",
        f"{fmean(line['seconds'] for line in lines):.1f}",
    ]


HEADER = [
    "estimator",
    "draws",
    "mean error of ATE",
    "bias",
    "90% intervals with the truth",
    "width",
    "PEHE",
    "coverage of CATE",
    "width of CATE",
    "processor s",
]


def render() -> None:
    """Write the tables into the page."""
    lines = report.read_lines(LINES)
    parts = [f"{report.versions(lines)}, one thread of {report.processor()}."]
    for surface in SURFACES:
        rows = []
        for model, result, title in ROWS:
            own = [line for line in lines if workers.is_result(line, {"surface": surface, "model": model})]
            if own:
                rows.append(row(title, result, own))
        parts.append(f"{surface.capitalize()} surface:\n\n{report.table(HEADER, rows)}")
    report.write("peers", "\n\n".join(parts), PAGE)


def main() -> None:
    """Measure and write the page."""
    parser = arguments.parser(__doc__)
    arguments.add_data(parser)
    arguments.add_fresh(parser)
    arguments.add_peers(parser)
    parser.add_argument("--models", type=arguments.names(tuple(ESTIMATORS)), default=list(MODELS))
    parser.add_argument("--draws", type=int, default=N_DRAWS, help="draws of each surface")
    args = parser.parse_args()
    if args.fresh:
        LINES.unlink(missing_ok=True)
    if not args.render:
        run(args)
    render()


if __name__ == "__main__":
    main()
