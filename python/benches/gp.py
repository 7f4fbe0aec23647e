"""Scores and times of `gp` beside scikit-learn's `GaussianProcessRegressor`, and of its sparse process on large tables.

Every fit adds one line to `target/bench/gp.jsonl`. A fit that has a line is not repeated, so that a run can be
interrupted and resumed, or be done in parts:

    python -m benches.gp                      # all parts
    python -m benches.gp --parts tables --splits 2
    python -m benches.gp --render

The tables and their splits are in the folders `gal` and `evans` of `SOFTWOOD_DATA` (or `--data`). The results are
written into docs/experiments/gp.md. Every fit runs on one thread.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from benches import report
from benches.measure import timed

LINES = report.SCRATCH / "gp.jsonl"
PAGE = report.ROOT / "docs" / "experiments" / "gp.md"
PARTS = ("tables", "kernels", "large", "trees", "noisy")
TABLES = ("boston", "concrete", "energy", "yacht")
KERNELS = ("squared_exponential", "matern52", "matern32", "matern12")
TREE_TABLES = ("housing", "yacht", "energy", "concrete", "airfoil", "wine")
"""Tables of `evans` for the comparison of constant noise and a tree; the defaults were chosen on others."""
N_SPLITS = 5
N_GENERATED = 100_000

COLUMNS: dict[str, dict[str, Any]] = {
    "gp": {},
    "sklearn": {"n_restarts_optimizer": 0},
    "sklearn2": {"n_restarts_optimizer": 2},
    **{kernel: {"kernel": kernel} for kernel in KERNELS},
    "constant": {},
    "tree": {},
    "sparse": {"n_inducing": 512},
    "sparse0": {"n_inducing": 512, "n_epochs": 0},
    "sparse256": {"n_inducing": 256},
    "tree256": {"n_inducing": 256},
}
"""Parameters of each column; `sklearn` columns are fits of scikit-learn."""


@dataclass(frozen=True)
class Job:
    """A fit: a column of the report on one split of a table."""

    column: str
    table: str
    split: int


# --- measuring


def read(data: Path, job: Job) -> tuple[Any, Any, Any, Any]:
    """Return features and target of the training rows and of the test rows."""
    if job.table in ("generated", "noisy"):
        return generated(is_noisy=job.table == "noisy")
    import pandas as pd

    folder = data / ("evans" if job.column in ("constant", "tree") else "gal")
    frame = pd.read_parquet(folder / f"{job.table}.parquet")
    features, target = frame.drop(columns="target").to_numpy(float), frame["target"].to_numpy(float)
    splits = pd.read_parquet(folder / "splits" / f"{job.table}.parquet")
    if "fold" in splits:
        test = (splits["fold"] == job.split).to_numpy()
        return features[~test], target[~test], features[test], target[test]
    order = splits[f"perm_{job.split}"].to_numpy()
    n_train = round(0.9 * len(order))
    train, test = order[:n_train], order[n_train:]
    return features[train], target[train], features[test], target[test]


def generated(*, is_noisy: bool) -> tuple[Any, Any, Any, Any]:
    """Draw rows of Friedman's function with two columns without effect.

    The noise is 1, or 0.5 and 2 on both sides of the middle of the fourth column.
    """
    import numpy as np

    random = np.random.default_rng(0)
    x = random.uniform(size=(N_GENERATED + 5000, 7))
    waves = 10 * np.sin(math.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    scale = np.where(x[:, 3] > 0.5, 2.0, 0.5) if is_noisy else 1.0
    y = waves + scale * random.standard_normal(len(x))
    return x[:N_GENERATED], y[:N_GENERATED], x[N_GENERATED:], y[N_GENERATED:]


def log_likelihood(y: Any, mean: Any, std: Any) -> float:
    """Return the mean log density of Normal predictions."""
    import numpy as np

    score = (y - mean) / std
    return float(np.mean(-0.5 * np.log(2 * math.pi) - np.log(std) - 0.5 * score**2))


def fit_sklearn(x: Any, y: Any, params: dict[str, Any]) -> Any:
    """Fit scikit-learn's process with one length scale per column."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kernel = ConstantKernel() * RBF([1.0] * x.shape[1]) + WhiteKernel()
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(StandardScaler(), model).fit(x, y)


def measure(data: Path, job: Job) -> dict[str, Any]:
    """Fit and score one job."""
    import numpy as np

    import softwood

    x, y, new_x, new_y = read(data, job)
    params = COLUMNS[job.column]
    line: dict[str, Any] = {"column": job.column, "table": job.table, "split": job.split, "n_rows": len(y)}
    if job.column.startswith("sklearn"):
        model, line["seconds"] = timed(lambda: fit_sklearn(x, y, params))
        (mean, std), line["predict_seconds"] = timed(lambda: model.predict(new_x, return_std=True))
        line["log_likelihood"] = log_likelihood(new_y, mean, std)
    else:
        is_tree = job.column.startswith("tree")
        kind = softwood.HeteroscedasticGPRegressor if is_tree else softwood.GPRegressor
        model, line["seconds"] = timed(lambda: kind(random_state=0, n_jobs=1, **params).fit(x, y))
        line["n_leaves"] = (len(model.export_dict()["nodes"]) + 1) // 2 if is_tree else 1
        dist = model.predict_dist(new_x)
        (mean, std), line["predict_seconds"] = timed(lambda: (dist.mean, dist.std))
        line["log_likelihood"] = float(np.mean(dist.logpdf(new_y)))
        line["normal"] = log_likelihood(new_y, mean, std)
    line["rmse"] = float(np.sqrt(np.mean((new_y - mean) ** 2)))
    line["coverage_90"] = float(np.mean(np.abs(new_y - mean) < 1.6448536 * std))
    line["target_sd"] = float(np.std(y))
    return line


def jobs_of(args: argparse.Namespace) -> list[Job]:
    """List the fits of the parts that are asked for."""
    jobs = []
    splits = range(args.splits)
    if "tables" in args.parts:
        columns = ("gp", "sklearn", "sklearn2")
        jobs += [Job(column, table, split) for split in splits for table in TABLES for column in columns]
    if "kernels" in args.parts:
        jobs += [Job(kernel, table, split) for split in splits for table in TABLES for kernel in KERNELS]
    if "large" in args.parts:
        jobs += [Job("sparse", "generated", 0), Job("sparse0", "generated", 0), Job("sparse256", "generated", 0)]
        jobs += [Job("sparse", "protein", 0), Job("sparse0", "protein", 0)]
    if "trees" in args.parts:
        jobs += [
            Job(column, table, split) for split in splits for table in TREE_TABLES for column in ("constant", "tree")
        ]
    if "noisy" in args.parts:
        jobs += [Job("sparse256", "noisy", 0), Job("tree256", "noisy", 0)]
    return jobs


def known_lines() -> list[dict[str, Any]]:
    """Read the results so far."""
    return [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []


def run(args: argparse.Namespace) -> None:
    """Measure what has no line yet."""
    LINES.parent.mkdir(parents=True, exist_ok=True)
    done = {Job(line["column"], line["table"], line["split"]) for line in known_lines()}
    for job in jobs_of(args):
        if job in done:
            continue
        line = measure(args.data, job)
        with LINES.open("a") as file:
            file.write(json.dumps(line) + "\n")


# --- reporting


def lines_of(column: str, table: str) -> list[dict[str, Any]]:
    """Return the lines of a column, in the order of the splits."""
    found = [line for line in known_lines() if (line["column"], line["table"]) == (column, table)]
    return sorted(found, key=lambda line: int(line["split"]))


def mean_of(column: str, table: str, name: str, splits: set[int] | None = None) -> float:
    """Average a figure of a column over splits, by default all; not a number if there are none."""
    lines = [line for line in lines_of(column, table) if splits is None or line["split"] in splits]
    return fmean([line[name] for line in lines] or [math.nan])


def scores_table() -> str:
    """Compare log-likelihoods, errors and times with scikit-learn, on the splits that all columns have."""
    columns = ("gp", "sklearn", "sklearn2")
    rows = []
    for table in TABLES:
        splits = set.intersection(*({line["split"] for line in lines_of(column, table)} for column in columns))
        scores = [mean_of(column, table, "log_likelihood", splits) for column in columns]
        scores.insert(1, mean_of("gp", table, "normal", splits))
        errors = [mean_of(column, table, "rmse", splits) for column in columns[:2]]
        covered = mean_of("gp", table, "coverage_90", splits)
        times = [mean_of(column, table, "seconds", splits) for column in columns]
        row = [table, f"{len(splits)}", *(f"{figure:.3f}" for figure in [*scores, *errors, covered])]
        rows.append([*row, *(f"{seconds:.2f}" for seconds in times), f"{times[1] / times[0]:.1f}"])
    header = ["table", "splits", "LL: `gp`", "LL: `gp`, exact Normal", "LL: scikit-learn", "LL: 2 restarts"]
    header += ["RMSE: `gp`", "RMSE: scikit-learn", "coverage of 90%: `gp`", "fit s: `gp`", "fit s: scikit-learn"]
    return report.table([*header, "fit s: 2 restarts", "ratio of times"], rows)


def members_table() -> str:
    """Compare the predictive distribution with the Normal distribution of the same moments."""
    rows = []
    for table in TABLES:
        scores = [mean_of("gp", table, name) for name in ("log_likelihood", "normal")]
        rows.append([table, f"{scores[0]:.4f}", f"{scores[1]:.4f}", f"{scores[0] - scores[1]:+.4f}"])
    return report.table(["table", "LL of `gp`", "LL of the Normal", "difference"], rows)


def kernels_table() -> str:
    """Compare the kernels."""
    rows = []
    for table in TABLES:
        scores = [f"{mean_of(kernel, table, 'log_likelihood'):.3f}" for kernel in KERNELS]
        rows.append([table, *scores])
    return report.table(["table", *(f"`{kernel}`" for kernel in KERNELS)], rows)


def large_table(tables: tuple[str, ...]) -> str:
    """Report sparse processes on many rows."""
    names = {
        "sparse": "`gp`, 512 inducing points",
        "sparse0": "... `n_epochs=0`",
        "sparse256": "`gp`, 256 inducing points",
        "tree256": "`gp-rnn-tree`, 256 inducing points",
    }
    rows = []
    for table in tables:
        for column, title in names.items():
            for line in lines_of(column, table):
                score = line["log_likelihood"] + math.log(line["target_sd"])
                row = [table, f"{line['n_rows']}", title, f"{score:.3f}", f"{line['rmse'] / line['target_sd']:.3f}"]
                row += [f"{line['coverage_90']:.3f}", f"{line['seconds']:.0f}", f"{line['predict_seconds']:.1f}"]
                rows.append(row)
    header = ["table", "rows", "model", "log-likelihood", "RMSE", "coverage of 90%", "fit s", "predict s"]
    return report.table(header, rows)


def trees_table() -> str:
    """Compare constant noise with a tree."""
    rows = []
    for table in TREE_TABLES:
        splits = set.intersection(
            *({line["split"] for line in lines_of(column, table)} for column in ("constant", "tree"))
        )
        if not splits:
            continue
        row = [table, f"{len(splits)}"]
        for name in ("log_likelihood", "normal", "rmse", "coverage_90", "seconds"):
            for column in ("constant", "tree"):
                figure = mean_of(column, table, name, splits)
                target_sd = mean_of(column, table, "target_sd", splits)
                in_units = figure + math.log(target_sd)
                scaled = {"log_likelihood": in_units, "normal": in_units, "rmse": figure / target_sd}.get(name, figure)
                row.append(f"{scaled:.1f}" if name == "seconds" else f"{scaled:.3f}")
        rows.append([*row, f"{mean_of('tree', table, 'n_leaves', splits):.1f}"])
    names = ("LL", "LL of the Normal", "RMSE", "coverage of 90%", "fit s")
    header = ["table", "folds", *(f"{name}: {model}" for name in names for model in ("`gp`", "`gp-rnn-tree`"))]
    return report.table([*header, "leaves"], rows)


def write(section: str, text: str) -> None:
    """Replace the text between the markers of a section of the page."""
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    head, rest = PAGE.read_text(encoding="utf-8").split(begin)
    _, tail = rest.split(end)
    PAGE.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}", encoding="utf-8")


def render() -> None:
    """Write the sections that have results into the page."""
    columns = {line["column"] for line in known_lines()}
    if "gp" in columns:
        write("scores", scores_table())
        write("members", members_table())
    if "matern52" in columns:
        write("kernels", kernels_table())
    if "sparse" in columns:
        write("large", large_table(("generated", "protein")))
    if "tree256" in columns:
        write("noisy", large_table(("noisy",)))
    if "tree" in columns:
        write("trees", trees_table())


def main() -> None:
    """Measure and write the report."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # read when numpy is imported
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("SOFTWOOD_DATA", report.ROOT.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--splits", type=int, default=N_SPLITS)
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
