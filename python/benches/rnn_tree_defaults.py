"""Defaults of `rnn-tree`, compared on tables that are not in the report: mean scores of each variant.

Every measurement adds one line to `target/bench/rnn_tree_defaults.jsonl`; one that has a line is not repeated:

    python -m benches.rnn_tree_defaults                        # all variants
    python -m benches.rnn_tree_defaults --variants default,given
    python -m benches.rnn_tree_defaults --render

The tables are in the folders of `SOFTWOOD_DATA` (or `--data`); of large ones a random sample is used. The table of
the results is written into docs/experiments/rnn-tree.md.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from typing import Any

from benches import report
from benches.measure import timed
from benches.rnn_tree import Line, names, write

LINES = report.SCRATCH / "rnn_tree_defaults.jsonl"
N_SPLITS = 3

TABLES: dict[str, tuple[str, str, int | None]] = {
    "pima": ("irsoy", "classification", None),
    "german": ("irsoy", "classification", None),
    "twonorm": ("irsoy", "classification", 400),
    "satimage": ("class", "classification", 600),
    "autompg": ("evans", "regression", None),
    "servo": ("evans", "regression", None),
    "machine": ("evans", "regression", None),
    "concreteslump": ("evans", "regression", None),
    "yacht": ("evans", "regression", None),
}
"""Folder, task and number of rows of the sample."""

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "given": {},
    "posterior=false": {"posterior": False},
    "posterior=true": {"posterior": True},
    "kl_weight=0.03": {"kl_weight": 0.03},
    "kl_weight=0.3": {"kl_weight": 0.3},
    "n_steps=400": {"n_steps": 400},
    "n_restarts=16": {"n_restarts": 16},
    "max_depth=4": {"max_depth": 4},
    "max_depth=6": {"max_depth": 6},
}
"""Parameters of each variant; `given` has one validation set for all restarts."""


@cache
def read(data: Path, name: str) -> tuple[Any, Any]:
    """Return features and target of a table."""
    import pandas as pd

    folder, _, n_rows = TABLES[name]
    frame = pd.read_parquet(data / folder / f"{name}.parquet")
    if n_rows is not None:
        frame = frame.sample(n_rows, random_state=0)
    return frame.drop(columns="target"), frame["target"].to_numpy()


def measure(data: Path, name: str, variant: str, split: int) -> Line:
    """Fit 90 % of a table, of which `given` has a ninth as validation set, and score the other 10 %."""
    import numpy as np

    import softwood

    X, y = read(data, name)
    order = np.random.default_rng(split).permutation(len(y))
    train, validation, test = np.split(order, [round(0.8 * len(y)), round(0.9 * len(y))])
    task = TABLES[name][1]
    kind = softwood.RNNTreeRegressor if task == "regression" else softwood.RNNTreeClassifier
    model = kind(**VARIANTS[variant], random_state=split, n_jobs=1)
    if variant == "given":
        given = {"X_val": X.iloc[validation], "y_val": y[validation]}
        _, seconds = timed(lambda: model.fit(X.iloc[train], y[train], **given))
    else:
        rows = np.r_[train, validation]
        _, seconds = timed(lambda: model.fit(X.iloc[rows], y[rows]))
    scores = softwood.score(model, X.iloc[test], y[test])
    prediction = model.predict(X.iloc[test])
    if task == "classification":
        error = float((prediction != y[test]).mean())
        return {"error": error, "nll": scores["nll"], "seconds": seconds}
    error = float(((prediction - y[test]) ** 2).mean() / y[train].var())
    return {"error": error, "nll": -scores["log_likelihood_std"], "seconds": seconds}


def known_lines() -> dict[tuple[str, str, int], Line]:
    """Read the results so far."""
    if not LINES.exists():
        return {}
    lines = [json.loads(line) for line in LINES.read_text().splitlines()]
    return {(line["table"], line["variant"], line["split"]): line for line in lines}


def run(args: argparse.Namespace) -> None:
    """Measure what has no line yet."""
    LINES.parent.mkdir(parents=True, exist_ok=True)
    done = known_lines()
    with LINES.open("a") as file:
        for variant in args.variants:
            for name in TABLES:
                for split in range(args.splits):
                    if (name, variant, split) in done:
                        continue
                    found = {"table": name, "variant": variant, "split": split}
                    found |= measure(args.data, name, variant, split)
                    file.write(json.dumps(found) + "\n")
                    file.flush()
                    print(found, flush=True)


def section() -> str:
    """Return the mean scores of the variants that are measured on all tables."""
    found = known_lines()
    rows = []
    for variant in VARIANTS:
        of_variant = {key: line for key, line in found.items() if key[1] == variant}
        if {key[0] for key in of_variant} != set(TABLES):
            continue

        def mean(task: str, name: str, lines: dict[tuple[str, str, int], Line] = of_variant) -> float:
            """Return the mean over the tables of a task."""
            of_task = [table for table in TABLES if TABLES[table][1] == task]
            return fmean(fmean(line[name] for key, line in lines.items() if key[0] == table) for table in of_task)

        scores = [mean(task, name) for task in ("classification", "regression") for name in ("error", "nll")]
        seconds = fmean(line["seconds"] for line in of_variant.values())
        rows.append([f"`{variant}`", *(f"{score:.3f}" for score in scores), f"{seconds:.1f}"])
    titles = ["variant", "error rate", "NLL (classes)", "MSE", "NLL (regression)", "processor s"]
    return report.table(titles, rows)


def main() -> None:
    """Run the command."""
    data = Path(os.environ.get("SOFTWOOD_DATA", report.ROOT.parent / "shared" / "data"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data)
    parser.add_argument("--variants", type=partial(names, list(VARIANTS)), default=list(VARIANTS))
    parser.add_argument("--splits", type=int, default=N_SPLITS, help="number of random splits of each table")
    parser.add_argument("--render", action="store_true", help="only write the page")
    args = parser.parse_args()
    if not args.render:
        run(args)
    text = section()
    write("defaults", text)
    print(text)


if __name__ == "__main__":
    main()
