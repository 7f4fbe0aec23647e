"""RMSE after k labelled rows, with rows chosen by each criterion of `select_rows`.

    python -m benches.design                  # measure what has no line yet, and write the page
    python -m benches.design --seeds 2
    python -m benches.design --render

Every search adds one line to `target/bench/design.jsonl`; a search that has a line is not repeated. The tables are in
the folders `gal` and `evans` of `SOFTWOOD_DATA` (or `--data`). The results are written into docs/experiments/design.md.
Every fit runs on one thread.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benches import report
from benches.measure import timed

LINES = report.SCRATCH / "design.jsonl"
PAGE = report.ROOT / "docs" / "experiments" / "design.md"
TABLES = (
    "gal/boston",
    "gal/concrete",
    "gal/energy",
    "gal/kin8nm",
    "gal/power",
    "gal/yacht",
    "evans/airfoil",
    "evans/autompg",
    "evans/stock",
    "evans/wine",
)
MODELS = ("gp", "forest")
CRITERIA = ("information", "variance_reduction", "variance", "random")
N_SEEDS = 8

N_START, N_BATCH, N_LABELS = 20, 10, (40, 70, 100)
"""Random rows to begin with, rows of a batch, and numbers of labels at which the error is measured."""
MAX_POOL, MAX_TEST = 1000, 1000


@dataclass(frozen=True)
class Job:
    """A search: batches by one criterion on one split of a table."""

    model: str
    table: str
    criterion: str
    seed: int


# --- measuring


def read(data: Path, job: Job) -> tuple[Any, Any, Any, Any]:
    """Return features and target of the pool and of the test rows; a third of the rows is the test set."""
    import numpy as np
    import pandas as pd

    frame = pd.read_parquet(data / f"{job.table}.parquet")
    x, y = frame.drop(columns="target").to_numpy(float), frame["target"].to_numpy(float)
    order = np.random.default_rng(job.seed).permutation(len(y))
    test, pool = np.split(order, [len(y) // 3])
    test, pool = test[:MAX_TEST], pool[:MAX_POOL]
    return x[pool], y[pool], x[test], y[test]


def estimator(job: Job) -> Any:
    """Return the unfitted model."""
    import softwood

    if job.model == "gp":
        return softwood.GPRegressor(n_restarts=0, random_state=job.seed, n_jobs=1)
    return softwood.ForestRegressor(n_estimators=100, n_members=20, random_state=job.seed, n_jobs=1)


def errors(data: Path, job: Job) -> list[float]:
    """Label rows batch by batch; return the RMSE at each number of labels, in units of the target's deviation."""
    import numpy as np

    from softwood.design import select_rows

    x, y, new_x, new_y = read(data, job)
    labelled = np.arange(N_START)  # the rows are in random order
    found = []
    while True:
        model = estimator(job).fit(x[labelled], y[labelled])
        if len(labelled) in N_LABELS:
            found.append(float(np.sqrt(np.mean((model.predict(new_x) - new_y) ** 2)) / np.std(new_y)))
        if len(labelled) >= N_LABELS[-1]:
            return found
        rest = np.setdiff1d(np.arange(len(y)), labelled)
        seed = 1000 * job.seed + len(labelled)
        chosen = select_rows(model, x[rest], N_BATCH, job.criterion, random_state=seed)
        labelled = np.concatenate([labelled, rest[chosen.rows]])


def known_lines() -> list[dict[str, Any]]:
    """Read the results so far."""
    return [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []


def run(args: argparse.Namespace) -> None:
    """Measure what has no line yet."""
    LINES.parent.mkdir(parents=True, exist_ok=True)
    done = {Job(line["model"], line["table"], line["criterion"], line["seed"]) for line in known_lines()}
    for seed in range(args.seeds):
        jobs = [Job(model, table, criterion, seed) for model in MODELS for table in TABLES for criterion in CRITERIA]
        for job in jobs:
            if job in done:
                continue
            found, seconds = timed(lambda job=job: errors(args.data, job))  # type: ignore[misc]
            with LINES.open("a") as file:
                file.write(json.dumps({**vars(job), "errors": found, "seconds": seconds}) + "\n")


# --- reporting


def complete_lines() -> list[dict[str, Any]]:
    """Return the results of the seeds whose searches are all done."""
    lines = known_lines()
    n_searches = len(MODELS) * len(TABLES) * len(CRITERIA)
    counts = Counter(line["seed"] for line in lines)
    return [line for line in lines if counts[line["seed"]] == n_searches]


def errors_of(model: str, table: str, criterion: str, at: int) -> list[float]:
    """Return the errors at one number of labels, in the order of the seeds."""
    wanted = (model, table, criterion)
    lines = [line for line in complete_lines() if (line["model"], line["table"], line["criterion"]) == wanted]
    return [line["errors"][at] for line in sorted(lines, key=lambda line: int(line["seed"]))]


def table_of(model: str) -> str:
    """Compare the criteria on every table, and by the geometric mean of their ratios to random rows."""
    logs: dict[tuple[str, int], list[float]] = {}
    rows = []
    for table in TABLES:
        row = [table]
        for at in range(len(N_LABELS)):
            by_criterion = {criterion: errors_of(model, table, criterion, at) for criterion in CRITERIA}
            best = min(fmean(found) for found in by_criterion.values())
            for criterion, found in by_criterion.items():
                text = f"{fmean(found):.3f}"
                row.append(f"**{text}**" if fmean(found) == best else text)
                logs.setdefault((criterion, at), []).append(
                    math.log(fmean(found)) - math.log(fmean(by_criterion["random"]))
                )
        rows.append(row)
    ratios = [f"{math.exp(fmean(logs[criterion, at])):.3f}" for at in range(len(N_LABELS)) for criterion in CRITERIA]
    rows.append(["ratio to random", *ratios])
    header = [f"{criterion}, {n}" for n in N_LABELS for criterion in CRITERIA]
    return report.table(["table", *header], rows)


def wins_table() -> str:
    """Count the tables on which a criterion beats random rows, and those beyond two standard errors of the seeds."""
    rows = []
    for model in MODELS:
        for criterion in CRITERIA[:3]:
            row = [f"`{model}`", criterion]
            for at in range(len(N_LABELS)):
                signs = []
                for table in TABLES:
                    pairs = zip(
                        errors_of(model, table, "random", at), errors_of(model, table, criterion, at), strict=True
                    )
                    falls = [a - b for a, b in pairs]
                    error = stdev(falls) / math.sqrt(len(falls)) if len(falls) > 1 else math.inf
                    signs.append((fmean(falls) > 0, abs(fmean(falls)) > 2 * error))
                better = sum(is_better for is_better, _ in signs)
                clear = [sum(c and b for b, c in signs), sum(c and not b for b, c in signs)]
                row.append(f"{better} of {len(signs)} (clearly {clear[0]}; clearly worse {clear[1]})")
            rows.append(row)
    return report.table(["model", "criterion", *(f"better than random, {n} labels" for n in N_LABELS)], rows)


def write(section: str, text: str) -> None:
    """Replace the text between the markers of a section of the page."""
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    head, rest = PAGE.read_text(encoding="utf-8").split(begin)
    _, tail = rest.split(end)
    PAGE.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}", encoding="utf-8")


def render() -> None:
    """Write the tables into the page."""
    for model in MODELS:
        write(model, table_of(model))
    write("wins", wins_table())
    lines = complete_lines()
    n_seeds = len({line["seed"] for line in lines})
    seconds = sum(line["seconds"] for line in lines)
    write("cost", f"{n_seeds} seeds, {len(lines)} searches, {seconds / 60:.1f} minutes of processor time.")


def main() -> None:
    """Measure and write the report."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # read when numpy is imported
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("SOFTWOOD_DATA", report.ROOT.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--render", action="store_true", help="only write the page")
    args = parser.parse_args()
    if args.fresh:
        LINES.unlink(missing_ok=True)
    if not args.render:
        run(args)
    render()


if __name__ == "__main__":
    main()
