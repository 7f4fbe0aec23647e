"""Scores of `vart` on the tables of Salazar's paper, beside the published figures, `vst` and `sglb`.

Every fit adds one line to `target/bench/vart.jsonl`. A fit that has a line is not repeated, so that a run can be
interrupted and resumed, or be done in parts:

    python -m benches.vart                              # table A: 18 tables, ten folds, default parameters
    python -m benches.vart --columns default --quick    # three folds
    python -m benches.vart --columns depth5,depth10 --folds 3
    python -m benches.vart --parts large,leaves
    python -m benches.vart --render

The tables and their folds are in the folder `evans` of `SOFTWOOD_DATA` (or `--data`). The results are written into
docs/experiments/vart.md, and the picture of the posterior over the number of leaves into docs/img.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from typing import Any

from benches import report

LINES = report.SCRATCH / "vart.jsonl"
PAGE = report.ROOT / "docs" / "experiments" / "vart.md"
PICTURE = report.ROOT / "docs" / "img" / "vart-leaves.svg"
PARTS = ("tables", "large", "leaves")
N_FOLDS = 10
QUICK_FOLDS = 3
LARGE_FOLDS = 2


@dataclass(frozen=True)
class Published:
    """Columns of tables A and B of the paper."""

    vart: float
    """Best of the columns of `VaRT`."""
    ensemble: float
    """Best of CatBoost, random forest and XGBoost."""


TABLES = {
    "autompg": Published(0.109, 0.113),
    "concreteslump": Published(0.009, 0.209),
    "forest": Published(0.387, 0.396),
    "solar": Published(0.092, 0.086),
    "stock": Published(0.059, 0.067),
    "yacht": Published(0.035, 0.018),
    "airfoil": Published(0.131, 0.061),
    "autos": Published(0.121, 0.072),
    "breastcancer": Published(0.360, 0.362),
    "concrete": Published(0.141, 0.081),
    "fertility": Published(0.387, 0.358),
    "housing": Published(0.097, 0.103),
    "machine": Published(0.110, 0.089),
    "pendulum": Published(0.056, 0.061),
    "servo": Published(0.077, 0.050),
    "skillcraft": Published(0.114, 0.116),
    "sml": Published(0.049, 0.018),
    "wine": Published(0.117, 0.096),
}
"""Table A: mean absolute error of a target that is scaled to [-1, 1] (printed as RMSE)."""
LARGE = {"tamielectric": Published(0.508, 0.503), "kin40k": Published(0.099, 0.097)}
"""Table B."""

COLUMNS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("VaRTRegressor", {}),
    "depth3": ("VaRTRegressor", {"max_depth": 3}),
    "depth5": ("VaRTRegressor", {"max_depth": 5}),
    "depth7": ("VaRTRegressor", {"max_depth": 7}),
    "depth10": ("VaRTRegressor", {"max_depth": 10, "start_depth": 6}),
    "one_fit": ("VaRTRegressor", {"n_fits": 1}),
    "forest": ("VaRTRegressor", {"n_estimators": 4}),
    "vst": ("VSTRegressor", {}),
    "vst_one_fit": ("VSTRegressor", {"n_fits": 1}),
    "sglb": ("SGLBRegressor", {}),
}
"""Estimator and parameters of each column of the report."""


@dataclass(frozen=True)
class Job:
    """A fit: a column of the report on one fold of a table."""

    column: str
    table: str
    fold: int


# --- measuring


@cache
def read(data: Path, name: str) -> tuple[Any, Any, Any]:
    """Return features, target and fold of each row."""
    import pandas as pd

    frame = pd.read_parquet(data / f"{name}.parquet")
    folds = pd.read_parquet(data / "splits" / f"{name}.parquet")["fold"].to_numpy()
    return frame.drop(columns="target"), frame["target"].to_numpy(float), folds


def measure(data: Path, job: Job) -> dict[str, Any]:
    """Fit and score one job."""
    import numpy as np

    import softwood

    features, target, folds = read(data, job.table)
    train, test = folds != job.fold, folds == job.fold
    kind, params = COLUMNS[job.column]
    start = time.process_time()
    model = getattr(softwood, kind)(random_state=0, n_jobs=1, **params).fit(features[train], target[train])
    seconds = time.process_time() - start
    scores = softwood.score(model, features[test], target[test])
    half_range = (target.max() - target.min()) / 2
    mean_error = float(np.abs(model.predict(features[test]) - target[test]).mean())
    return {
        "column": job.column,
        "table": job.table,
        "fold": job.fold,
        "seconds": seconds,
        "mae": scores["mae"] / half_range,
        "mae_of_mean": mean_error / half_range,
        "rmse_std": scores["rmse_std"],
        "log_likelihood_std": scores["log_likelihood_std"],
        "crps_std": scores["crps"] / float(target[train].std()),
        "coverage_90": scores["coverage_90"],
    }


def leaves(data: Path, n_rows: int) -> dict[str, Any]:
    """Return the posterior over the number of leaves for rows of a soft tree with four leaves, mean of eight draws."""
    import numpy as np

    import softwood

    del data
    sums = np.zeros(64)
    for seed in range(8):
        random = np.random.default_rng(seed)
        x = random.standard_normal((n_rows, 2))
        right, left_up, right_up = (
            random.uniform(size=n_rows) < 1 / (1 + np.exp(-5 * t)) for t in (x[:, 0], x[:, 1] + 0.3, x[:, 1] - 0.2)
        )
        level = np.where(right, np.where(right_up, 2.0, 0.5), np.where(left_up, -1.0, -2.5))
        options: dict[str, Any] = {"leaf_model": "constant", "leaf_mixing": "mixture", "start_depth": 3, "n_fits": 1}
        options |= {"initial_split": 0.73, "split_rate": 5.0}
        options |= {"squares": False, "rotation": "none", "scaling": "standard"}
        model = softwood.VaRTRegressor(**options, random_state=0, n_jobs=1)
        found = model.fit(x, level + 0.25 * random.standard_normal(n_rows)).structure()["n_leaves"]
        sums[: len(found)] += np.asarray(found) / 8
    return {"leaves": n_rows, "probabilities": sums.tolist()}


def jobs_of(args: argparse.Namespace) -> Iterator[Job]:
    """List the fits of the parts that are asked for."""
    if "tables" in args.parts:
        n_folds = QUICK_FOLDS if args.quick else args.folds
        for fold in range(n_folds):
            yield from (Job(column, table, fold) for column in args.columns for table in TABLES)
    if "large" in args.parts:
        for fold in range(LARGE_FOLDS):
            yield from (Job(column, table, fold) for column in ("depth5", "default") for table in LARGE)


def known_lines() -> list[dict[str, Any]]:
    """Read the results so far."""
    if not LINES.exists():
        return []
    return [json.loads(line) for line in LINES.read_text().splitlines()]


def run(args: argparse.Namespace) -> None:
    """Measure what has no line yet, on several processes."""
    LINES.parent.mkdir(parents=True, exist_ok=True)
    done = {Job(line["column"], line["table"], line["fold"]) for line in known_lines() if "column" in line}
    tasks: list[tuple[Callable[..., Any], Any]] = [(measure, job) for job in jobs_of(args) if job not in done]
    if "leaves" in args.parts:
        tasks += [(leaves, n_rows) for n_rows in (100, 1000)]
    with ProcessPoolExecutor(args.processes) as pool, LINES.open("a") as file:
        for future in as_completed([pool.submit(task, args.data, job) for task, job in tasks]):
            file.write(json.dumps(future.result()) + "\n")
            file.flush()


# --- reporting


def means(column: str, table: str, n_folds: int) -> dict[str, float] | None:
    """Average the folds of a column; none unless all folds are there."""
    lines = {line["fold"]: line for line in known_lines() if (line.get("column"), line.get("table")) == (column, table)}
    if any(fold not in lines for fold in range(n_folds)):
        return None
    chosen = [lines[fold] for fold in range(n_folds)]
    names = [name for name in chosen[0] if name not in ("column", "table", "fold")]
    return {name: fmean(line[name] for line in chosen) for name in names}


def cell(found: dict[str, float] | None, name: str, digits: int = 3) -> str:
    """Format a figure of a column, or nothing."""
    return f"{found[name]:.{digits}f}" if found else ""


def error_table() -> str:
    """Compare mean absolute errors with the paper."""
    columns = ("default", "depth3", "depth5", "depth7", "depth10", "vst", "sglb")
    folds = dict.fromkeys(("depth3", "depth5", "depth7", "depth10"), QUICK_FOLDS)
    rows, wins = [], [0, 0, 0]
    for name, paper in TABLES.items():
        found = {column: means(column, name, folds.get(column, N_FOLDS)) for column in columns}
        default = found["default"]
        if default:
            error = round(default["mae"], 3)
            wins = [wins[0] + (error <= paper.vart), wins[1] + (error <= paper.ensemble), wins[2] + 1]
        figures = [cell(found[column], "mae") for column in columns]
        rows.append([name, f"{paper.vart:.3f}", f"{paper.ensemble:.3f}", *figures, cell(default, "mae_of_mean")])
    header = [
        "table",
        "paper: best VaRT",
        "paper: best ensemble",
        "`vart`",
        "depth 3",
        "depth 5",
        "depth 7",
        "depth 10",
    ]
    text = report.table([*header, "`vst`", "`sglb`", "`vart`, error of the mean"], rows)
    return f"""{text}

`vart` with default parameters is at or below the paper's best VaRT column on {wins[0]} of {wins[2]} tables, and
at or below its best ensemble on {wins[1]} of {wins[2]}."""


def score_table() -> str:
    """Compare log-likelihood, CRPS and coverage of the families that have all folds, or else the first three."""
    for n_folds in (N_FOLDS, QUICK_FOLDS):
        columns = [c for c in ("default", "vst", "sglb") if all(means(c, name, n_folds) for name in TABLES)]
        if len(columns) > 1 or n_folds == QUICK_FOLDS:
            break
    names = {"default": "`vart`", "vst": "`vst`", "sglb": "`sglb`"}
    scores = {
        "log_likelihood_std": "log-likelihood",
        "crps_std": "CRPS",
        "coverage_90": "coverage of 90%",
        "seconds": "processor s",
    }
    found = {column: [means(column, name, n_folds) or {} for name in TABLES] for column in columns}
    rows = []
    for at, name in enumerate([*TABLES, "**mean**"]):
        row = [name]
        for score in scores:
            for column in columns:
                values = [line[score] for line in (found[column] if at == len(TABLES) else [found[column][at]])]
                row.append(f"{fmean(values):.{1 if score == 'seconds' else 3}f}")
        rows.append(row)
    header = [f"{title}: {names[column]}" for title in scores.values() for column in columns]
    return f"Means of {n_folds} folds.\n\n" + report.table(["table", *header], rows)


def single_table() -> str:
    """Compare single fits and sums."""
    columns = ("default", "one_fit", "vst", "vst_one_fit", "forest")
    rows = []
    for score in ("mae", "rmse_std", "log_likelihood_std", "crps_std", "coverage_90", "seconds"):
        figures = []
        for column in columns:
            found = [means(column, name, QUICK_FOLDS) for name in TABLES]
            known = [fold[score] for fold in found if fold]
            figures.append(f"{fmean(known):.4f}" if len(known) == len(TABLES) else "")
        rows.append([score, *figures])
    header = ["mean of 18 tables, three folds", "`vart`", "`vart`, `n_fits=1`", "`vst`", "`vst`, `n_fits=1`"]
    return report.table([*header, "`vart`, `n_estimators=4`"], rows)


def large_table() -> str:
    """Compare the large tables with the paper."""
    rows = []
    for name, paper in LARGE.items():
        found = {column: means(column, name, LARGE_FOLDS) for column in ("depth5", "default")}
        figures = [cell(found[column], score) for column in found for score in ("mae", "seconds")]
        rows.append([name, f"{paper.vart:.3f}", f"{paper.ensemble:.3f}", *figures])
    header = [
        "table",
        "paper: VaRT, depth 5",
        "paper: best ensemble",
        "depth 5",
        "processor s",
        "default",
        "processor s",
    ]
    return report.table(header, rows)


def leaves_picture() -> str:
    """Draw the posterior over the number of leaves for 100 and 1000 rows."""
    found = {line["leaves"]: line["probabilities"] for line in known_lines() if "leaves" in line}
    if set(found) != {100, 1000}:
        return ""
    n_shown, unit = 10, 34
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="820" height="270" font-family="sans-serif" font-size="13">'
    ]
    parts.append('<rect width="820" height="270" fill="white"/>')
    for panel, n_rows in enumerate((100, 1000)):
        left = 40 + 380 * panel
        parts.append(f'<text x="{left}" y="22">{n_rows} rows: posterior over the number of leaves (truth 4)</text>')
        for at in range(n_shown):
            p = found[n_rows][at] if at < len(found[n_rows]) else 0.0
            color = "#2b6cb0" if at + 1 == 4 else "#a0aec0"
            x, height = left + at * unit, 190 * p
            parts.append(
                f'<rect x="{x}" y="{235 - height:.1f}" width="{unit - 6}" height="{height:.1f}" fill="{color}"/>'
            )
            parts.append(f'<text x="{x + 9}" y="254">{at + 1}</text>')
            if p >= 0.01:
                parts.append(f'<text x="{x}" y="{229 - height:.1f}" font-size="11">{p:.2f}</text>')
    parts.append("</svg>")
    PICTURE.write_text("\n".join(parts) + "\n")
    return ", ".join(f"{n}: {found[n][3]:.2f}" for n in (100, 1000))


def render() -> None:
    """Write the tables into the page."""
    sections = {"errors": error_table(), "scores": score_table(), "single": single_table(), "large": large_table()}
    truth = leaves_picture()
    if truth:
        sections["leaves"] = f"Probability of the true number of leaves, by number of rows: {truth}."
    page = PAGE.read_text()
    for name, text in sections.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        head, rest = page.split(begin)
        _, tail = rest.split(end)
        page = f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}"
    PAGE.write_text(page)


def names(known: tuple[str, ...], text: str) -> list[str]:
    """Split a list of names and refuse unknown ones."""
    found = text.split(",")
    unknown = [name for name in found if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return found


def main() -> None:
    """Run the command."""
    default = Path(os.environ.get("SOFTWOOD_DATA", report.ROOT.parent / "shared" / "data"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--parts", type=partial(names, PARTS), default=["tables"])
    parser.add_argument("--columns", type=partial(names, tuple(COLUMNS)), default=["default", "vst", "sglb"])
    parser.add_argument("--folds", type=int, default=N_FOLDS)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_FOLDS} folds")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--render", action="store_true", help="only write the page")
    args = parser.parse_args()
    args.data /= "evans"
    if args.fresh:
        LINES.unlink(missing_ok=True)
    if not args.render:
        run(args)
    render()


if __name__ == "__main__":
    main()
