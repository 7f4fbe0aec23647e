"""Scores of `soft-tree`, `tree` and `ldt` on the tables of Irsoy, Yildiz and Alpaydin, beside the published figures.

Every evaluation of a family on a table adds one line to `target/bench/soft_trees.jsonl`. An evaluation that has a line
is not repeated, so that a run can be interrupted and resumed, or be done in parts:

    python -m benches.soft_trees --parts regression,classification --sets boston,pima
    python -m benches.soft_trees --parts options --quick
    python -m benches.soft_trees --render

The tables and their splits are in the folder `irsoy` of `SOFTWOOD_DATA` (or `--data`), as Parquet or CSV files. The
part `peers` needs the interpreter of an environment with neural-trees, pandas and pyarrow (`--peers`); without it, it
is left out. The results are written into docs/experiments/soft-tree.md, and a picture into docs/img.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any

from benches import report
from benches.measure import timed
from benches.svg import BLUE, INK, ORANGE, Frame, caption, dot, polyline

LINES = report.SCRATCH / "soft_trees.jsonl"
PAGE = report.ROOT / "docs" / "experiments" / "soft-tree.md"
PICTURE = report.ROOT / "docs" / "img" / "soft-tree-sinusoid.svg"
PARTS = ("regression", "classification", "options", "figure", "peers")
FAMILIES = ("soft-tree", "tree", "ldt")
N_REPEATS = 5
"""Repeats of the published splits; each has two folds, which exchange training and validation rows."""


@dataclass(frozen=True)
class Published:
    """Figures of the paper for one table: MSE or accuracy in percent, and number of nodes."""

    soft: float
    hard: float
    nodes: tuple[int, ...]
    ldt: float = math.nan


REGRESSION = {
    "abalone": Published(0.439, 0.557, (7, 32)),
    "add10": Published(0.094, 0.267, (15, 202)),
    "boston": Published(0.271, 0.344, (11, 18)),
    "california": Published(0.312, 0.326, (3, 201)),
    "comp": Published(0.037, 0.046, (5, 30)),
    "concrete": Published(0.264, 0.286, (13, 69)),
    "puma8fh": Published(0.383, 0.418, (3, 40)),
    "puma8fm": Published(0.057, 0.074, (3, 92)),
    "puma8nh": Published(0.388, 0.416, (9, 52)),
    "puma8nm": Published(0.054, 0.084, (13, 144)),
}
"""Table 1 of the paper: mean squared error of the standardised target."""
CLASSIFICATION = {
    "breast": Published(95.34, 93.80, (17, 47, 4), 95.09),
    "german": Published(75.74, 69.07, (16, 142, 7), 74.16),
    "magic": Published(81.27, 84.09, (17, 1072, 40), 83.07),
    "musk2": Published(92.25, 94.62, (22, 202, 15), 93.59),
    "pima": Published(70.85, 69.41, (26, 111, 5), 76.89),
    "polyadenylation": Published(77.41, 69.81, (21, 558, 5), 77.45),
    "ringnorm": Published(88.94, 87.54, (368, 354, 4), 77.25),
    "satellite47": Published(83.90, 84.01, (11, 163, 9), 83.30),
    "spambase": Published(78.38, 90.14, (22, 155, 13), 89.86),
    "twonorm": Published(97.92, 87.59, (41, 429, 3), 98.00),
}
"""Table 2 of the paper: accuracy in percent (its caption says error)."""
SMALL = ("abalone", "boston", "concrete", "breast", "german", "pima", "satellite47")
PEER_SETS = ("boston", "concrete", "pima")

OPTIONS: dict[str, tuple[str, ...]] = {
    "default": (),
    "`growth=depth-first`": ("growth=depth-first",),
    "`refine=false`": ("refine=false",),
    "`prune=false`": ("prune=false",),
    "`leaf_model=constant`": ("leaf_model=constant",),
    "`squares=false`": ("squares=false",),
    "`min_gain=0`": ("min_gain=0",),
    "`min_gain=2`": ("min_gain=2",),
    "`posterior=ensemble`": ("posterior=ensemble",),
    "`n_fits=4`": ("n_fits=4",),
    "`variant=released`": ("variant=released",),
    "`variant=paper`, `max_leaf_nodes=32`": ("variant=paper", "max_leaf_nodes=32"),
}
PEER = "neural-trees"
PEER_OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "growth": {"growth": "per_leaf", "validation_fraction": 0.5},
}

Folds = list[dict[str, float]]


@dataclass(frozen=True)
class Job:
    """One evaluation: a family with parameters on the first repeats of a table."""

    table: str
    model: str
    params: tuple[str, ...] = ()
    n_repeats: int = N_REPEATS


# --- measuring


def read_table(folder: Path, name: str) -> Any:
    """Read a Parquet or CSV file."""
    import pandas as pd

    path = table_path(folder, name)
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def table_path(folder: Path, name: str) -> Path:
    """Return the Parquet file of a table or, if there is none, the CSV file."""
    path = folder / f"{name}.parquet"
    return path if path.exists() else path.with_suffix(".csv")


def splits_path(data: Path, job: Job) -> Path:
    """Return the file of the splits of a job; one with fewer repeats is written as CSV."""
    if job.n_repeats == N_REPEATS:
        return table_path(data / "splits", job.table)
    path = report.SCRATCH / f"splits_{job.table}_{job.n_repeats}.csv"
    columns = ["test", *(f"half_{repeat}" for repeat in range(1, job.n_repeats + 1))]
    read_table(data / "splits", job.table)[columns].astype(int).to_csv(path, index=False)
    return path


def evaluate(job: Job, args: argparse.Namespace) -> Folds:
    """Run the program; return scores, number of nodes and processor seconds of each fold."""
    command = [str(args.program), "evaluate", str(table_path(args.data, job.table)), "--target", "target", "--json"]
    command += [
        "--quiet",
        "--threads",
        "1",
        "--model",
        job.model,
        "--protocol",
        f"splits:{splits_path(args.data, job)}",
    ]
    if job.table in CLASSIFICATION:
        command += ["--task", "classification"]
    for param in job.params:
        command += ["--param", param]
    before = children_seconds()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds = children_seconds() - before
    folds = json.loads(done.stdout)["models"][0]["folds"]
    nodes = [{"n_nodes": fold["n_nodes"]} if fold.get("n_nodes") is not None else {} for fold in folds]
    return [
        {**fold["scores"], **n_nodes, "seconds": seconds / len(folds)}
        for fold, n_nodes in zip(folds, nodes, strict=True)
    ]


def children_seconds() -> float:
    """Return the processor seconds of all child processes so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def evaluate_peer(job: Job, args: argparse.Namespace) -> Folds:
    """Run this module with the interpreter of the peer's environment."""
    command = [str(args.peers), "-m", "benches.soft_trees", "--data", str(args.data)]
    command += ["--peer-job", job.table, job.params[0]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(report.ROOT / "python")}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    folds: Folds = json.loads(done.stdout.splitlines()[-1])
    return folds


def peer_folds(name: str, option: str, data: Path) -> Folds:
    """Fit neural-trees on every fold in this process.

    With default parameters it is given the training rows. To grow a tree it takes its own random validation set: it is
    given training and validation rows and told to hold out half of them.
    """
    from sklearn.preprocessing import StandardScaler

    package = import_module("neural_trees")
    rows, layout = read_table(data, name), read_table(data / "splits", name)
    X, y = rows.drop(columns="target").to_numpy(float), rows["target"].to_numpy()
    is_test = layout["test"].to_numpy().astype(bool)
    estimator = package.SoftDecisionTreeRegressor if name in REGRESSION else package.SoftDecisionTree
    found = []
    for fold in range(2 * N_REPEATS):
        half = layout[f"half_{fold // 2 + 1}"].to_numpy()
        train = ~is_test if "growth" in PEER_OPTIONS[option] else ~is_test & (half == fold % 2)
        scaler = StandardScaler().fit(X[train])
        model = estimator(random_state=fold, **PEER_OPTIONS[option])
        _, seconds = timed(partial(model.fit, scaler.transform(X[train]), y[train]))
        predicted = model.predict(scaler.transform(X[is_test]))
        if name in REGRESSION:
            score = {"rmse": float(((predicted - y[is_test]) ** 2).mean() ** 0.5)}
        else:
            score = {"error": float((predicted != y[is_test]).mean())}
        n_nodes = 2 * int(model.model_.is_split.sum()) + 1
        found.append({**score, "n_nodes": n_nodes, "seconds": seconds})
    return found


def lines() -> dict[Job, Folds]:
    """Read the earlier measurements."""
    found: dict[Job, Folds] = {}
    for line in LINES.read_text().splitlines() if LINES.exists() else []:
        entry = json.loads(line)
        folds = entry.pop("folds")
        found[Job(**{**entry, "params": tuple(entry["params"])})] = folds
    return found


def jobs(parts: Sequence[str], sets: Sequence[str]) -> Iterator[Job]:
    """List the evaluations of the selected parts and tables."""
    for part, published in (("regression", REGRESSION), ("classification", CLASSIFICATION)):
        if part in parts:
            yield from (Job(name, model) for name in published if name in sets for model in FAMILIES)
    if "options" in parts:
        yield from (Job(name, "soft-tree", params, 1) for params in OPTIONS.values() for name in sets)
    if "peers" in parts:
        yield from (Job(name, PEER, (option,)) for name in PEER_SETS if name in sets for option in PEER_OPTIONS)


def run(args: argparse.Namespace, parts: Sequence[str], sets: Sequence[str]) -> None:
    """Run the selected evaluations that have no line yet; report those that fail and continue."""
    done = lines()
    for job in jobs(parts, sets):
        if job in done:
            continue
        try:
            folds = evaluate_peer(job, args) if job.model == PEER else evaluate(job, args)
        except subprocess.CalledProcessError as error:
            print(f"{job.table} {job.model} {' '.join(job.params)}: exit code {error.returncode}", file=sys.stderr)
            continue
        with LINES.open("a") as file:
            file.write(json.dumps({**asdict(job), "folds": folds}) + "\n")
        error_name = "rmse" if job.table in REGRESSION else "error"
        summary = f"{error_name} {mean(folds, error_name):.4f}, {mean(folds, 'seconds'):.1f} s"
        print(f"{job.table} {job.model} {' '.join(job.params)}: {summary}", file=sys.stderr)


# --- tables


def mean(folds: Folds | None, measure: str) -> float:
    """Return a mean over folds; NaN if it was not measured."""
    values = [fold[measure] for fold in folds or [] if measure in fold]
    return fmean(values) if values else math.nan


def fold_errors(folds: Folds, name: str) -> list[float]:
    """Return the mean squared errors or the error rates of the folds."""
    return [fold["rmse"] ** 2 if name in REGRESSION else fold["error"] for fold in folds]


def f_test(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the p value of the 5x2 cv paired F test on the errors of two models, two folds of each repeat in order.

    `F = sum d^2 / (2 sum s^2)` has the distribution F(10, 5), with the differences `d` of errors and the sum of
    squared deviations `s^2` of the two differences of each repeat. The survival function is the regularised incomplete
    beta function `I_x(5/2, 5)` at `x = 5 / (5 + 10 F)`, a finite sum because its second argument is an integer.
    """
    d = [a - b for a, b in zip(ours, theirs, strict=True)]
    spread = sum((first - second) ** 2 / 2 for first, second in zip(d[::2], d[1::2], strict=True))
    if len(d) != 2 * N_REPEATS or spread == 0.0:
        return math.nan
    x = 5 / (5 + 10 * sum(value**2 for value in d) / (2 * spread))
    total, term = 0.0, 1.0
    for j in range(5):
        total += term
        term *= (2.5 + j) / (j + 1) * (1 - x)
    return float(x**2.5 * total)


@dataclass(frozen=True)
class Row:
    """The figures of one table: score as printed, nodes and p values by family."""

    name: str
    score: dict[str, float]
    nodes: dict[str, float]
    p: dict[str, float]


def comparison_row(name: str, found: dict[Job, Folds]) -> Row:
    """Collect the figures of a table; NaN where nothing was measured."""
    folds = {model: found.get(Job(name, model), []) for model in FAMILIES}
    errors = {model: fold_errors(folds[model], name) for model in FAMILIES}
    score = {}
    for model in FAMILIES:
        error = fmean(errors[model]) if errors[model] else math.nan
        score[model] = round(error, 3) if name in REGRESSION else round(100 * (1 - error), 2)
    nodes = {model: mean(folds[model], "n_nodes") for model in FAMILIES}
    rivals = [model for model in FAMILIES[1:] if errors[model] and errors[FAMILIES[0]]]
    return Row(name, score, nodes, {model: f_test(errors["soft-tree"], errors[model]) for model in rivals})


def plain(number: float, digits: int, *, signed: bool = False) -> str:
    """Format a number; NaN is empty."""
    if math.isnan(number):
        return ""
    return f"{number:+.{digits}f}" if signed else f"{number:.{digits}f}"


def p_value(p: float) -> str:
    """Format a p value; NaN is empty."""
    return "< 0.0001" if p < 0.0001 else plain(p, 4)


def slashed(numbers: Sequence[float]) -> str:
    """Format numbers of nodes."""
    return " / ".join(plain(number, 0) or "-" for number in numbers)


def count(rows: Sequence[Row], is_met: Callable[[Row], bool]) -> str:
    """Count the tables on which a comparison holds."""
    return f"{sum(map(is_met, rows))} of {len(rows)}"


def regression_section(found: dict[Job, Folds]) -> str:
    """Return the table of mean squared errors and its counts."""
    rows = [comparison_row(name, found) for name in REGRESSION if Job(name, "soft-tree") in found]
    cells = []
    for row in rows:
        paper = REGRESSION[row.name]
        scores = [plain(row.score[model], 3) for model in FAMILIES]
        nodes = [slashed(paper.nodes), slashed([row.nodes[model] for model in FAMILIES])]
        p = p_value(row.p.get("tree", math.nan))
        cells.append([row.name, plain(paper.soft, 3), plain(paper.hard, 3), *scores, *nodes, p])
    header = ["table", "paper: soft", "paper: hard", "`soft-tree`", "`tree`", "`ldt`"]
    header += ["nodes of the paper: soft / hard", "nodes: `soft-tree` / `tree` / `ldt`", "p against `tree`"]
    lower = count(rows, lambda row: row.score["soft-tree"] <= REGRESSION[row.name].soft)
    below = count(rows, lambda row: row.score["soft-tree"] < row.score["tree"])
    significant = count(rows, partial(below_with_p, rival="tree"))
    smaller = count(rows, lambda row: row.nodes["soft-tree"] < row.nodes["tree"])
    few = count(rows, lambda row: row.nodes["soft-tree"] <= REGRESSION[row.name].nodes[0])
    hard = count(rows, lambda row: row.score["tree"] <= REGRESSION[row.name].hard)
    return f"""{report.table(header, cells)}

- `soft-tree` is at or below the paper's soft tree on {lower}.
- `soft-tree` is below `tree` on {below}, with p < 0.05 on {significant}.
- `soft-tree` has fewer nodes than `tree` on {smaller}, and no more than the paper's soft tree on {few}.
- `tree` is at or below the paper's hard tree on {hard}."""


def below_with_p(row: Row, rival: str) -> bool:
    """Return whether `soft-tree` has a significantly smaller error than another family."""
    sign = 1 if row.name in REGRESSION else -1
    return sign * row.score["soft-tree"] < sign * row.score[rival] and row.p.get(rival, 1.0) < 0.05


def classification_section(found: dict[Job, Folds]) -> str:
    """Return the table of accuracies and its counts."""
    rows = [comparison_row(name, found) for name in CLASSIFICATION if Job(name, "soft-tree") in found]
    cells = []
    for row in rows:
        paper = CLASSIFICATION[row.name]
        scores = [*(paper.soft, paper.hard, paper.ldt), *(row.score[model] for model in FAMILIES)]
        nodes = [slashed(paper.nodes), slashed([row.nodes[model] for model in FAMILIES])]
        p = [p_value(row.p.get(model, math.nan)) for model in FAMILIES[1:]]
        cells.append([row.name, *(plain(score, 2) for score in scores), *nodes, *p])
    header = ["table", "paper: soft", "paper: hard", "paper: LDT", "`soft-tree`", "`tree`", "`ldt`"]
    header += ["nodes of the paper: soft / hard / LDT", "nodes: `soft-tree` / `tree` / `ldt`"]
    header += ["p against `tree`", "p against `ldt`"]
    higher = count(rows, lambda row: row.score["soft-tree"] >= CLASSIFICATION[row.name].soft)
    best = count(rows, lambda row: all(row.score["soft-tree"] >= row.score[model] for model in FAMILIES[1:]))
    tree, ldt = (count(rows, partial(below_with_p, rival=rival)) for rival in FAMILIES[1:])
    smaller = count(rows, lambda row: row.nodes["soft-tree"] < row.nodes["tree"])
    few = count(rows, lambda row: row.nodes["soft-tree"] <= CLASSIFICATION[row.name].nodes[0])
    hard = count(rows, lambda row: row.score["tree"] >= CLASSIFICATION[row.name].hard)
    near = count(rows, lambda row: abs(row.score["ldt"] - CLASSIFICATION[row.name].ldt) <= 1)
    above = count(rows, lambda row: row.score["ldt"] > CLASSIFICATION[row.name].ldt + 1)
    return f"""{report.table(header, cells)}

- `soft-tree` is at or above the paper's soft tree on {higher}.
- `soft-tree` is at or above the better of `tree` and `ldt` on {best}; it is above `tree` with p < 0.05 on {tree} and
  above `ldt` with p < 0.05 on {ldt}.
- `soft-tree` has fewer nodes than `tree` on {smaller}, and no more than the paper's soft tree on {few}.
- `tree` is at or above the paper's hard tree on {hard}.
- `ldt` is within one point of the paper's LDT on {near}, and higher by more than that on {above}."""


def options_section(found: dict[Job, Folds]) -> str:
    """Return the table of the options of `soft-tree`, each on the tables that the default was measured on too."""

    def by_table(params: tuple[str, ...]) -> dict[str, Folds]:
        measured = {name: found.get(Job(name, "soft-tree", params, 1)) for name in (*REGRESSION, *CLASSIFICATION)}
        return {name: folds for name, folds in measured.items() if folds is not None}

    base = by_table(())
    cells = []
    for label, params in OPTIONS.items():
        ours = {name: folds for name, folds in by_table(params).items() if name in base}
        if ours:
            cells.append([label, *option_cells(ours, base)])
    header = ["option", "tables", "MSE ratio", "log-likelihood", "coverage of 90%", "accuracy", "NLL", "nodes"]
    return report.table([*header, "seconds"], cells)


def option_cells(ours: dict[str, Folds], base: dict[str, Folds]) -> list[str]:
    """Return means over the tables of an option, and mean differences from the default."""
    numeric, classes = ([name for name in ours if name in tables] for tables in (REGRESSION, CLASSIFICATION))

    def average(names: Sequence[str], measure: str) -> float:
        return mean([{measure: mean(ours[name], measure)} for name in names], measure)

    def difference(names: Sequence[str], measure: str) -> float:
        return mean([{measure: mean(ours[name], measure) - mean(base[name], measure)} for name in names], measure)

    def log_mse(folds: Folds, name: str) -> float:
        return math.log(fmean(fold_errors(folds, name)))

    log_ratios = [log_mse(ours[name], name) - log_mse(base[name], name) for name in numeric]
    return [
        f"{len(numeric)} / {len(classes)}",
        plain(math.exp(fmean(log_ratios)) if log_ratios else math.nan, 3),
        plain(difference(numeric, "log_likelihood_std"), 3, signed=True),
        plain(average(numeric, "coverage_90"), 3),
        plain(0.0 - 100 * difference(classes, "error"), 2, signed=True),
        plain(difference(classes, "nll"), 4, signed=True),
        f"{plain(average(numeric, 'n_nodes'), 1) or '-'} / {plain(average(classes, 'n_nodes'), 1) or '-'}",
        plain(average(list(ours), "seconds"), 1),
    ]


def peers_section(found: dict[Job, Folds]) -> str:
    """Return the table of the peer beside `soft-tree`."""
    labels = {"default": "neural-trees, default", "growth": "neural-trees, `growth=per_leaf`"}
    cells = []
    for name in PEER_SETS:
        if Job(name, "soft-tree") not in found:
            continue
        models = [("`soft-tree`", Job(name, "soft-tree"))]
        models += [(labels[option], Job(name, PEER, (option,))) for option in PEER_OPTIONS]
        for label, job in models:
            if job not in found:
                continue
            error = fmean(fold_errors(found[job], name))
            score = f"MSE {error:.3f}" if name in REGRESSION else f"accuracy {100 * (1 - error):.2f}"
            # the folds of a peer that divides the rows itself are not those of the F test
            is_paired = job.params != ("growth",)
            ours = fold_errors(found[Job(name, "soft-tree")], name)
            p = f_test(ours, fold_errors(found[job], name)) if is_paired else math.nan
            nodes, seconds = mean(found[job], "n_nodes"), mean(found[job], "seconds")
            cells.append([name, label, score, plain(nodes, 1), plain(seconds, 2), p_value(p)])
    return report.table(["table", "model", "score", "nodes", "seconds", "p against `soft-tree`"], cells)


# --- picture


@dataclass(frozen=True)
class Curve:
    """A fitted curve on the grid, with its number of nodes and its mean squared error against the sinusoid."""

    y: list[float]
    n_nodes: int
    mse: float


GRID = [-1 + 0.0025 * step for step in range(801)]
FRAME = Frame(960, 560, 70, 920, 118, 488, (-1.0, 1.0), (-1.75, 1.75))


def sinusoid(x: float) -> float:
    """Return the true mean of the sample."""
    return math.sin(2 * math.pi * x)


def draw_sample() -> list[tuple[float, float]]:
    """Draw 400 rows of a sinusoid with noise of standard deviation 0.2."""
    rng = random.Random(0)
    xs = [rng.uniform(-1, 1) for _ in range(400)]
    return [(x, sinusoid(x) + rng.gauss(0, 0.2)) for x in xs]


def fit_curve(program: Path, model: str, params: Sequence[str]) -> Curve:
    """Fit a model to the sample with the program and predict the grid."""
    train, grid, fitted = (report.SCRATCH / f"sinusoid{suffix}" for suffix in (".csv", "_grid.csv", ".softwood"))
    write_csv(train, ["x", "y"], draw_sample())
    write_csv(grid, ["x"], [(x,) for x in GRID])
    fit = [str(program), "fit", str(train), "--target", "y", "--model", model, "-o", str(fitted), "--json", "--quiet"]
    fit += [argument for param in params for argument in ("--param", param)]
    done = subprocess.run(fit, stdout=subprocess.PIPE, text=True, check=True)
    # the text begins with the number of leaves
    n_leaves = int(json.loads(done.stdout)["training"]["chosen"].split()[0])
    done = subprocess.run(
        [str(program), "predict", str(fitted), str(grid)], stdout=subprocess.PIPE, text=True, check=True
    )
    y = [float(row["mean"]) for row in csv.DictReader(done.stdout.splitlines())]
    mse = fmean((value - sinusoid(x)) ** 2 for x, value in zip(GRID, y, strict=True))
    return Curve(y, 2 * n_leaves - 1, mse)


def write_csv(path: Path, header: Sequence[str], rows: Sequence[tuple[float, ...]]) -> None:
    """Write a table of numbers."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def picture(soft: Curve, hard: Curve) -> str:
    """Draw the sample, the sinusoid and both curves."""
    title = "A soft tree and a hard tree fitted to a sinusoid"
    subtitle = "400 rows of sin(2πx) with noise of standard deviation 0.2; errors are measured against the sinusoid."
    parts = FRAME.axes((-1.0, -0.5, 0.0, 0.5, 1.0), (-1.0, 0.0, 1.0), "x", "y")
    dots = [(*FRAME.pixels(*point), 2.6, 0.22) for point in draw_sample()]
    for x, y, radius, opacity in [*dots, (79.0, 91.5, 3.0, 0.35)]:
        parts.append(dot(x, y, radius, opacity=opacity))
    parts.append(caption(90, 96, "training data"))
    mean_curve = [sinusoid(x) for x in GRID]
    hard_text, soft_text = (f"{curve.n_nodes} nodes, MSE {curve.mse:.4f}" for curve in (hard, soft))
    for left, text, curve, color, width, dashes in [
        (200, "sinusoid", mean_curve, INK, 1.6, "5.6 4.8"),
        (316, f"tree: {hard_text}", hard.y, ORANGE, 1.8, ""),
        (580, f"soft-tree: {soft_text}", soft.y, BLUE, 2.6, ""),
    ]:
        parts.append(polyline([FRAME.pixels(*point) for point in zip(GRID, curve, strict=True)], color, width, dashes))
        parts.append(polyline([(left, 91.5), (left + 24, 91.5)], color, width, dashes))
        parts.append(caption(left + 32, 96, text))
    return FRAME.picture(title, subtitle, parts)


def figure(program: Path) -> str:
    """Write the picture; return the text that shows it."""
    soft, hard = fit_curve(program, "soft-tree", ["max_leaf_nodes=5"]), fit_curve(program, "tree", [])
    PICTURE.write_text(picture(soft, hard))
    return f"""![A soft tree and a hard tree fitted to a sinusoid](../img/{PICTURE.name})

`soft-tree` with `max_leaf_nodes=5` has {soft.n_nodes} nodes and a mean squared error of {soft.mse:.4f} against the
sinusoid; `tree` has {hard.n_nodes} nodes and {hard.mse:.4f}."""


# --- page


def write(section: str, text: str) -> None:
    """Replace the text between the markers of a section of the page."""
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    head, rest = PAGE.read_text().split(begin)
    _, tail = rest.split(end)
    PAGE.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}")


def render() -> None:
    """Write the tables of all measurements into the page."""
    found = lines()
    sections = {
        "regression": (regression_section, any(job.table in REGRESSION and job.n_repeats > 1 for job in found)),
        "classification": (classification_section, any(job.table in CLASSIFICATION for job in found)),
        "options": (options_section, any(job.n_repeats == 1 for job in found)),
        "peers": (peers_section, any(job.model == PEER for job in found)),
    }
    for name, (section, has_measurements) in sections.items():
        if has_measurements:
            text = section(found)
            write(name, text)
            print(f"{name}\n\n{text}\n")


def has_peer(python: Path | None) -> bool:
    """Return whether the peer can be imported in its environment."""
    if python is None or not python.exists():
        return False
    command = [str(python), "-c", "import neural_trees, pandas, pyarrow; neural_trees.SoftDecisionTree"]
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def main() -> None:
    """Run and write."""
    default_data = Path(os.environ.get("SOFTWOOD_DATA", report.ROOT.parent / "shared" / "data")) / "irsoy"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated")
    parser.add_argument("--sets", default=",".join((*REGRESSION, *CLASSIFICATION)), help="comma-separated")
    parser.add_argument("--quick", action="store_true", help="only small tables")
    parser.add_argument("--data", type=Path, default=default_data, help="folder of the tables and of `splits`")
    parser.add_argument("--program", type=Path, default=report.ROOT / "target" / "release" / "softwood")
    parser.add_argument("--peers", type=Path, help="interpreter of an environment with neural-trees")
    parser.add_argument("--fresh", action="store_true", help="delete earlier measurements")
    parser.add_argument("--render", action="store_true", help="only write the tables")
    parser.add_argument("--peer-job", nargs=2, metavar=("SET", "OPTION"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer_job:
        name, option = args.peer_job
        print(json.dumps(peer_folds(name, option, args.data)))
        return
    report.SCRATCH.mkdir(parents=True, exist_ok=True)
    if args.fresh:
        LINES.unlink(missing_ok=True)
    if not args.render:
        sets = [name for name in args.sets.split(",") if name in SMALL or not args.quick]
        parts = [part for part in args.parts.split(",") if part != "peers" or has_peer(args.peers)]
        run(args, parts, sets)
        if "figure" in parts:
            write("figure", figure(args.program))
    render()


if __name__ == "__main__":
    main()
