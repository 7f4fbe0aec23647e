"""Scores of `vst`, `vsgbm` and `sglb` beside CatBoost, NGBoost and BART on small public tables, all with defaults.

    python -m benches.regression_peers                          # measure what has no line yet, and write the page
    python -m benches.regression_peers --models vst,ngboost --tables yacht
    python -m benches.regression_peers --render

Every fit adds one line to `target/bench/regression_peers.jsonl`. The results are written into docs/benchmarks.md.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from benches import arguments, report, truth_models, workers

LINES = report.SCRATCH / "regression_peers.jsonl"
TABLES = ("boston", "concrete", "energy", "wine", "yacht")
MODELS = ("vst", "vsgbm", "sglb", "catboost", "ngboost", "bart")
N_SPLITS = 3
SCORES = {
    "log_score": ("log-likelihood (larger is better)", 2, max),
    "crps": ("CRPS (smaller is better)", 3, min),
    "rmse": ("RMSE (smaller is better)", 3, min),
    "coverage_90": ("coverage of 90% intervals", 2, None),
    "seconds": ("processor seconds, the fastest fit", 1, None),
}
"""Title, digits and best value of each table."""


def score_table(lines: list[dict[str, Any]], score: str) -> str:
    """Compare the models on every table; the best one is bold."""
    name, digits, best = SCORES[score]
    rows = [[truth_models.title(model)] for model in MODELS]
    tables = [table for table in TABLES if any(line["table"] == table for line in lines)]
    for table in tables:
        values = [summary_of(lines, {"model": model, "table": table}, score) for model in MODELS]
        known = [round(value, digits) for value in values if value is not None]
        for row, value in zip(rows, values, strict=True):
            text = "" if value is None else f"{value:.{digits}f}"
            is_best = value is not None and best is not None and round(value, digits) == best(known)
            row.append(f"**{text}**" if is_best else text)
    return report.table([name, *tables], [row for row in rows if any(row[1:])])


def summary_of(lines: list[dict[str, Any]], job: dict[str, Any], score: str) -> float | None:
    """Return the mean over the splits, or the minimum of times; None if a split is missing."""
    values = [line[score] for line in lines if workers.is_result(line, job)]
    if len(values) < N_SPLITS:
        return None
    return min(values) if score == "seconds" else fmean(values)


def render() -> None:
    """Write the tables into the docs."""
    lines = report.read_lines(LINES)
    tables = "\n\n".join(score_table(lines, score) for score in SCORES)
    text = f"""
{report.versions(lines)}, one thread of {report.processor()}. Means over the first {N_SPLITS} standard splits.

{tables}
"""
    report.write("regression-peers", text)


def main() -> None:
    """Measure and write the page."""
    parser = arguments.parser(__doc__)
    arguments.add_data(parser)
    arguments.add_fresh(parser)
    arguments.add_peers(parser)
    parser.add_argument("--tables", type=arguments.names(TABLES), default=list(TABLES))
    parser.add_argument("--models", type=arguments.names(MODELS), default=list(MODELS))
    args = parser.parse_args()
    if args.fresh:
        LINES.unlink(missing_ok=True)
    if not args.render:
        jobs = [
            {"table": table, "split": split, "model": model}
            for table in args.tables
            for split in range(N_SPLITS)
            for model in args.models
        ]

        def python_of(job: workers.Job) -> Path:
            return args.peers / "bin" / "python" if job["model"] in truth_models.PEERS else Path(sys.executable)

        workers.run(jobs, LINES, "benches.regression_worker", python_of, args.data)
    render()


if __name__ == "__main__":
    main()
