"""Scores of `sglb` with default parameters on public tables, beside CatBoost in the same run and the published figures.

Every fit is a process of its own on one thread and one line of `target/bench/quality.jsonl`. What has a line already
is not run again, so a run can be stopped and gone on with, or be done in parts:

    python -m benches.quality --sets boston,yacht --splits 0-3 --models softwood
    python -m benches.quality --render
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

from benches import published, report, tables

LINES = report.SCRATCH / "quality.jsonl"
CATBOOST = ("catboost", "catboost-stopped")
SETS = tables.REGRESSION + tables.CLASSES
REGRESSION_SLACK, CLASS_SLACK, AUROC_SLACK = 0.02, 0.003, 3.0
"""How far a mean may be behind the published one: NLL, NLL of classes, percent of AUROC."""


def parts(text: str, n: int) -> list[int]:
    """Read numbers and ranges, `0-3,7`; all of `n` where empty."""
    if not text:
        return list(range(n))
    found: list[int] = []
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return [number for number in found if number < n]


def lines() -> list[dict[str, Any]]:
    """Read what was measured."""
    return [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []


def run(args: argparse.Namespace) -> None:
    """Run what is asked for and has no line yet."""
    report.SCRATCH.mkdir(parents=True, exist_ok=True)
    done = {(line["model"], line["set"], line["split"]) for line in lines()}
    for name in args.sets.split(","):
        for at in parts(args.splits, tables.n_splits(name)):
            for model in args.models.split(","):
                if (model, name, at) in done:
                    continue
                found = measure(model, name, at, args)
                with LINES.open("a") as file:
                    file.write(json.dumps({"model": model, "set": name, "split": at, **found}) + "\n")
                print(f"{name} {at} {model}: NLL {found['nll']:.4f}, {found['fit']:.1f} s", file=sys.stderr)


def measure(model: str, name: str, at: int, args: argparse.Namespace) -> dict[str, Any]:
    """Run one model on one split in its own environment."""
    python = args.peers / "bin" / "python" if model in CATBOOST else Path(sys.executable)
    command = [str(python), "-m", "benches.pupil", model, name, str(at), "--seeds", str(args.seeds)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(report.ROOT / "python")}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


class Means:
    """Means over splits, by set, model and measure; only splits that all models of a set have count."""

    def __init__(self, found: list[dict[str, Any]]) -> None:
        by_split: dict[tuple[str, int], dict[str, dict[str, Any]]] = defaultdict(dict)
        for line in found:
            by_split[line["set"], line["split"]][line["model"]] = line
        self.versions = {line["model"].split("-")[0]: line["version"] for line in found}
        models_of: dict[str, set[str]] = defaultdict(set)
        for line in found:
            models_of[line["set"]].add(line["model"])
        self.members = max((line.get("n_members", 0) for line in found), default=0)
        self.splits: dict[str, int] = defaultdict(int)
        self.values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for (name, _), models in sorted(by_split.items()):
            if models.keys() != models_of[name]:
                continue
            self.splits[name] += 1
            for model, line in models.items():
                for measure, value in line.items():
                    if isinstance(value, float):
                        self.values[name, model, measure].append(value)

    def get(self, name: str, model: str, measure: str) -> float:
        """Give a mean; no number where nothing was measured."""
        values = self.values[name, model, measure]
        return fmean(values) if values else math.nan


COLUMNS = ["`sglb`", "CatBoost", "virtual", "CatBoost, stopped", "virtual", "published"]


def plain(number: float, digits: int) -> str:
    """Write a number; nothing for none."""
    return "" if math.isnan(number) else f"{number:.{digits}f}"


def nll_table(means: Means, sets: tuple[str, ...], digits: int, slack: float) -> str:
    """Lay out negative log-likelihoods."""
    rows = []
    for name in sets:
        if not means.splits[name]:
            continue
        ours = means.get(name, "softwood", "nll")
        theirs = [means.get(name, model, f"{kind}nll") for model in CATBOOST for kind in ("", "virtual_")]
        paper = published.NLL[name]
        numbers = [ours, *theirs, paper]
        verdict = "yes" if ours <= paper + slack else "**no**"
        seconds = [plain(means.get(name, model, "fit"), 1) for model in ("softwood", *CATBOOST)]
        rows.append([name, str(means.splits[name]), *(plain(number, digits) for number in numbers), verdict])
        rows[-1].append(" / ".join(filter(None, seconds)) + " s")
    header = ["table", "splits", *COLUMNS, f"within {slack}", "processor time of the fits"]
    return report.table(header, rows)


def auroc_table(means: Means) -> str:
    """Lay out how well knowledge uncertainty tells foreign rows apart."""
    rows = []
    for name in SETS:
        if not means.splits[name]:
            continue
        ours = 100 * means.get(name, "softwood", "auroc_knowledge")
        kinds = [(model, f"{kind}auroc_knowledge") for model in CATBOOST for kind in ("", "virtual_")]
        theirs = [100 * means.get(name, *kind) for kind in kinds]
        paper = published.AUROC[name]
        verdict = "yes" if ours >= paper - AUROC_SLACK else "**no**"
        rows.append([name, *(plain(number, 0) for number in [ours, *theirs, paper]), verdict])
    return report.table(["table", *COLUMNS, f"within {AUROC_SLACK:.0f}"], rows)


def render() -> None:
    """Write the tables of all lines into the docs."""
    means = Means(lines())
    versions = ", ".join(f"{model} {version}" for model, version in sorted(means.versions.items()))
    ensembles = f"; CatBoost's ensembles have {means.members} models" if means.members else ""
    text = f"""
{versions}{ensembles}. Means over splits; what is empty was not run. *CatBoost* has 1000 trees; *stopped*,
as many as are best on the last fifth of the training rows; *virtual*, ten virtual members of one of its models. Fits in
processor seconds of one thread: `sglb` with its choice of settings, CatBoost's ensemble, and that with its choice.

Negative log-likelihood, regression:

{nll_table(means, tables.REGRESSION, 2, REGRESSION_SLACK)}

Negative log-likelihood, two classes:

{nll_table(means, tables.CLASSES, 4, CLASS_SLACK)}

AUROC of knowledge uncertainty between test rows and foreign rows, in percent:

{auroc_table(means)}
"""
    report.write("quality", text)
    print(text)


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated")
    parser.add_argument("--splits", default="", help="such as 0-3,7; all where not given")
    parser.add_argument("--models", default=",".join(("softwood", *CATBOOST)), help="comma-separated")
    parser.add_argument("--seeds", type=int, default=10, help="models of CatBoost's ensemble")
    parser.add_argument("--peers", type=Path, default=report.ROOT / ".venv-peers", help="environment of the peers")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    parser.add_argument("--render", action="store_true", help="run nothing; write the tables")
    args = parser.parse_args()
    if args.fresh:
        LINES.unlink(missing_ok=True)
    if not args.render:
        run(args)
    render()


if __name__ == "__main__":
    main()
