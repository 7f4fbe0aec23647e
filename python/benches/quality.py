"""Scores of `sglb` with default parameters on public tables, beside CatBoost in the same run and the published figures.

Every fit runs in a separate process on one thread and adds one line to `target/bench/quality.jsonl`. A fit that has a
line is not repeated, so that a run can be interrupted and resumed, or be done in parts:

    python -m benches.quality --sets boston,yacht --splits 0-3 --models softwood
    python -m benches.quality --render
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

from benches import arguments, published, report, tables
from benches.workers import environment

LINES = report.SCRATCH / "quality.jsonl"
CATBOOST = ("catboost", "catboost-stopped")
SETS = tables.REGRESSION + tables.CLASSES
REGRESSION_SLACK, CLASS_SLACK, AUROC_SLACK = 0.02, 0.003, 3.0
"""Accepted differences from the published means: NLL of regression, NLL of classification, AUROC in percent."""


def parts(text: str, n: int) -> list[int]:
    """Read numbers and ranges such as `0-3,7`; an empty text selects all of `n`."""
    if not text:
        return list(range(n))
    found: list[int] = []
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return [number for number in found if number < n]


def run(args: argparse.Namespace) -> None:
    """Run the selected fits that have no line yet."""
    done = {(line["model"], line["set"], line["split"]) for line in report.read_lines(LINES)}
    for name in args.sets.split(","):
        for split in parts(args.splits, tables.n_splits(name)):
            for model in args.models.split(","):
                if (model, name, split) in done:
                    continue
                found = measure(model, name, split, args)
                report.add_line(LINES, {"model": model, "set": name, "split": split, **found})
                print(f"{name} {split} {model}: NLL {found['nll']:.4f}, {found['fit']:.1f} s", file=sys.stderr)


def measure(model: str, name: str, split: int, args: argparse.Namespace) -> dict[str, Any]:
    """Run one model on one split in the environment of its library."""
    python = args.peers / "bin" / "python" if model in CATBOOST else Path(sys.executable)
    command = [str(python), "-m", "benches.quality_worker", model, name, str(split), "--seeds", str(args.seeds)]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


class Means:
    """Means over splits by table, model and measure."""

    def __init__(self, found: list[dict[str, Any]]) -> None:
        self.versions = {line["model"].split("-")[0]: line["version"] for line in found}
        self.lines: dict[tuple[str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
        for line in found:
            self.lines[line["set"], line["model"]][line["split"]] = line

    def splits(self, name: str, models: tuple[str, ...]) -> list[int]:
        """Return the splits of a table that were measured for all of these models."""
        return sorted(set.intersection(*(set(self.lines[name, model]) for model in models)))

    def get(self, name: str, model: str, measure: str, splits: list[int]) -> float:
        """Return a mean over splits; NaN if nothing was measured."""
        lines = self.lines[name, model]
        values = [lines[split][measure] for split in splits if split in lines and measure in lines[split]]
        return fmean(values) if values else math.nan

    def rivals(self, name: str) -> tuple[str, ...]:
        """Return the models of CatBoost that were measured on a table."""
        return tuple(model for model in CATBOOST if self.lines[name, model])


def plain(number: float, digits: int) -> str:
    """Format a number; NaN is empty."""
    return "" if math.isnan(number) else f"{number:.{digits}f}"


def nll_table(means: Means, sets: tuple[str, ...], digits: int, slack: float) -> str:
    """Return the table of negative log-likelihoods with the published ones."""
    rows = []
    for name in sets:
        splits = means.splits(name, ("softwood",))
        if not splits:
            continue
        ours, seconds = (means.get(name, "softwood", measure, splits) for measure in ("nll", "fit"))
        paper = published.NLL[name]
        verdict = "yes" if ours <= paper + slack else "**no**"
        rows.append([name, str(len(splits)), plain(ours, digits), plain(paper, digits), verdict, f"{seconds:.1f} s"])
    return report.table(["table", "splits", "`sglb`", "published", f"within {slack}", "fit"], rows)


def auroc_table(means: Means) -> str:
    """Return the table of AUROCs of knowledge uncertainty with the published ones."""
    rows = []
    for name in SETS:
        splits = means.splits(name, ("softwood",))
        if not splits:
            continue
        ours = 100 * means.get(name, "softwood", "auroc_knowledge", splits)
        paper = published.AUROC[name]
        verdict = "yes" if ours >= paper - AUROC_SLACK else "**no**"
        rows.append([name, plain(ours, 0), plain(paper, 0), verdict])
    return report.table(["table", "`sglb`", "published", f"within {AUROC_SLACK:.0f}"], rows)


BESIDE = ("ensemble", "virtual")
RIVALS = {"catboost": "CatBoost", "catboost-stopped": "CatBoost, stopped"}


def beside_table(means: Means) -> str:
    """Return the table of `sglb` and CatBoost on the splits that both were measured on."""
    rows = []
    for name in SETS:
        digits = 4 if name in tables.CLASSES else 2
        for rival in means.rivals(name):
            splits = means.splits(name, ("softwood", rival))
            if not splits:
                continue
            models = [("softwood", ""), (rival, ""), (rival, "virtual_")]
            losses = [plain(means.get(name, model, f"{kind}nll", splits), digits) for model, kind in models]
            aurocs = [
                plain(100 * means.get(name, model, f"{kind}auroc_knowledge", splits), 0) for model, kind in models
            ]
            seconds = [plain(means.get(name, model, "fit", splits), 1) for model in ("softwood", rival)]
            members = plain(means.get(name, rival, "n_members", splits), 0)
            rows.append([name, str(len(splits)), RIVALS[rival], members, *losses, *aurocs, " / ".join(seconds) + " s"])
    header = ["table", "splits", "beside", "of models", "NLL: `sglb`", *BESIDE, "AUROC: `sglb`", *BESIDE, "fits"]
    return report.table(header, rows)


def render() -> None:
    """Write the tables of all measurements into the docs."""
    means = Means(report.read_lines(LINES))
    versions = ", ".join(f"{model} {version}" for model, version in sorted(means.versions.items()))
    text = f"""
{versions}. Means over splits; fits in processor seconds of one thread.

Negative log-likelihood, regression:

{nll_table(means, tables.REGRESSION, 2, REGRESSION_SLACK)}

Negative log-likelihood, two classes:

{nll_table(means, tables.CLASSES, 4, CLASS_SLACK)}

AUROC of knowledge uncertainty between test rows and foreign rows, in percent:

{auroc_table(means)}

Beside CatBoost, on the splits that both were run on: negative log-likelihood, AUROC of knowledge uncertainty in
percent, and processor seconds of the fits (`sglb` with its choice of settings). *CatBoost* has 1000 trees; *stopped*,
as many as are best on the last fifth of the training rows; *ensemble* is one of as many models as stand there;
*virtual*, ten virtual members of one of them.

{beside_table(means)}
"""
    report.write("quality", text)
    print(text)


def main() -> None:
    """Run and write."""
    parser = arguments.parser(__doc__)
    arguments.add_fresh(parser)
    arguments.add_peers(parser)
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated")
    parser.add_argument("--splits", default="", help="such as 0-3,7; default: all")
    parser.add_argument("--models", default=",".join(("softwood", *CATBOOST)), help="comma-separated")
    parser.add_argument("--seeds", type=int, default=10, help="number of models in CatBoost's ensemble")
    args = parser.parse_args()
    if args.fresh:
        LINES.unlink(missing_ok=True)
    if not args.render:
        run(args)
    render()


if __name__ == "__main__":
    main()
