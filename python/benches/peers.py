"""Speed of `sglb` beside CatBoost, LightGBM and NGBoost: processor time, one thread each, the same number of trees.

Every measurement is a process of its own and one line of `target/bench/peers.jsonl`; contestants take turns, and the
table shows the least of each one's times. `--sizes` and `--contestants` measure a part; lines that are there already
stay unless `--fresh` is given.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benches import report

LINES = report.SCRATCH / "peers.jsonl"
PEERS = ("catboost", "lightgbm", "ngboost")
MB = 1e6


@dataclass(frozen=True)
class Size:
    """A generated table, how long to boost on it, and how often to measure."""

    rows: int
    columns: int
    trees: int
    rate: float
    repeats: int
    with_ngboost: bool = False

    @property
    def arguments(self) -> list[str]:
        """Say it on a command line."""
        return [str(self.rows), str(self.columns), str(self.trees), str(self.rate)]


SIZES = {
    "10k x 10": Size(10_000, 10, 1000, 0.05, 5, with_ngboost=True),
    "100k x 20": Size(100_000, 20, 1000, 0.05, 2),
    "1M x 28": Size(1_000_000, 28, 100, 0.1, 3),
}
ONCE = ("ngboost",)
"""Contestants that are measured once: long runs that no bar depends on."""
CONTESTANTS = (
    "catboost",
    "sglb",
    "sglb-scores",
    "lightgbm",
    "squared",
    "sglb-virtual",
    "sglb-scores-virtual",
    "sglb-ten",
    "ngboost",
)


def measure(name: str, size: Size, peers: Path) -> dict[str, Any]:
    """Run one contestant in its own environment."""
    python = peers / "bin" / "python" if name in PEERS else Path(sys.executable)
    command = [str(python), "-m", "benches.contestant", name, *size.arguments]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment = {**os.environ, **threads, "PYTHONPATH": str(report.ROOT / "python")}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(sizes: list[str], contestants: list[str], peers: Path) -> None:
    """Measure what is asked for, a line each; contestants take turns."""
    report.SCRATCH.mkdir(parents=True, exist_ok=True)
    for name in sizes:
        size = SIZES[name]
        for turn in range(size.repeats):
            for contestant in contestants:
                if (contestant in ONCE and turn > 0) or (contestant == "ngboost" and not size.with_ngboost):
                    continue
                found = measure(contestant, size, peers)
                with LINES.open("a") as lines:
                    lines.write(json.dumps({"size": name, "contestant": contestant, **found}) + "\n")
                print(f"{name} {contestant}: {found['fit']:.2f} s", file=sys.stderr)


class Figures:
    """The least of what was measured, by size, contestant and measure."""

    def __init__(self, lines: str) -> None:
        self.found: dict[tuple[str, str, str], float] = {}
        self.versions: dict[str, str] = {}
        self.repeats: dict[tuple[str, str], int] = defaultdict(int)
        for line in lines.splitlines():
            entry = json.loads(line)
            size, contestant = entry.pop("size"), entry.pop("contestant")
            self.versions[contestant] = entry.pop("version")
            self.repeats[size, contestant] += 1
            entry.pop("numpy")
            for name, value in entry.items():
                key = (size, contestant, name)
                self.found[key] = min(value, self.found.get(key, value))

    def get(self, size: str, contestant: str, measure: str) -> float | None:
        """Give a figure, or None where it was not measured."""
        return self.found.get((size, contestant, measure))


@dataclass(frozen=True)
class Bar:
    """A ratio of ours to theirs that should not be exceeded."""

    what: str
    ours: tuple[str, str]
    theirs: tuple[str, str]
    most: float
    times: float = 1.0
    """What their figure is multiplied by."""


def bars(size: str) -> list[Bar]:
    """List what is asked of a size."""
    against_catboost = 1 / 5 if size == "10k x 10" else 1 / 3
    return [
        Bar("fit, mean and scale, one chain / CatBoost", ("sglb", "fit"), ("catboost", "fit"), against_catboost),
        Bar("the same, noise in the scores of splits", ("sglb-scores", "fit"), ("catboost", "fit"), against_catboost),
        Bar("fit, ten members / ten CatBoost fits", ("sglb-ten", "fit"), ("catboost", "fit"), 1 / 6, 10.0),
        Bar(
            "predict, ten virtual members / CatBoost",
            ("sglb-virtual", "predict_virtual"),
            ("catboost", "predict_virtual"),
            1 / 2,
        ),
        Bar("fit, mean and scale / LightGBM's mean", ("sglb", "fit"), ("lightgbm", "fit"), 1.3),
        Bar("fit, mean alone / LightGBM's mean", ("squared", "fit"), ("lightgbm", "fit"), 1.0),
    ]


def ratio_table(figures: Figures) -> str:
    """Lay out ratios of times against their bars."""
    rows = []
    for size in SIZES:
        for bar in bars(size):
            ours, theirs = figures.get(size, *bar.ours), figures.get(size, *bar.theirs)
            if ours is None or theirs is None:
                continue
            theirs *= bar.times
            ratio = ours / theirs
            verdict = "yes" if ratio <= bar.most else "**no**"
            rows.append(
                [bar.what, size, f"{ours:.2f} s", f"{theirs:.2f} s", f"{ratio:.2f}", f"{bar.most:.2f}", verdict]
            )
    return report.table(["what", "table", "ours", "theirs", "ratio", "at most", "met"], rows)


def nll_table(figures: Figures) -> str:
    """Lay out held-out losses against CatBoost's: no worse is asked."""
    pairs = [
        ("noise in the scores of splits / one model", ("sglb-scores", "nll"), ("catboost", "nll")),
        ("its ten virtual members", ("sglb-scores-virtual", "nll"), ("catboost", "nll_virtual")),
        ("one draw of the posterior / one model", ("sglb", "nll"), ("catboost", "nll")),
        ("ten virtual members of one chain", ("sglb-virtual", "nll"), ("catboost", "nll_virtual")),
        ("ten members / ten virtual members", ("sglb-ten", "nll"), ("catboost", "nll_virtual")),
    ]
    rows = []
    for size in SIZES:
        for what, ours, theirs in pairs:
            a, b = figures.get(size, *ours), figures.get(size, *theirs)
            if a is not None and b is not None:
                rows.append([what, size, f"{a:.3f}", f"{b:.3f}", "yes" if a <= b else "**no**"])
    return report.table(["held-out NLL", "table", "ours", "CatBoost", "no worse"], rows)


LABELS = {
    "catboost": "CatBoost, one model",
    "catboost-virtual": "CatBoost, ten virtual members",
    "ngboost": "NGBoost",
    "lightgbm": "LightGBM (no scale)",
    "sglb": "`sglb`, one chain",
    "sglb-virtual": "`sglb`, ten virtual members",
    "sglb-ten": "`sglb`, ten members",
    "sglb-scores": "`sglb`, `sampling = split-noise`",
    "sglb-scores-virtual": "the same, ten virtual members",
    "squared": "`sgb`, `head = squared`",
}


def quality_table(figures: Figures) -> str:
    """Lay out errors, so that speed is not bought with them, with times and memory beside."""
    rows = []
    for size in SIZES:
        for contestant, label in LABELS.items():
            of, nll = (contestant, "nll")
            if contestant == "catboost-virtual":
                of, nll = ("catboost", "nll_virtual")
            seconds = figures.get(size, of, "fit")
            if seconds is None:
                continue
            loss, rmse = figures.get(size, of, nll), figures.get(size, of, "rmse")
            memory = figures.get(size, of, "memory")
            rows.append(
                [
                    label,
                    size,
                    f"{seconds:.2f} s",
                    "" if memory is None else f"{memory / MB:.0f} MB",
                    "" if loss is None else f"{loss:.3f}",
                    "" if rmse is None or of != contestant else f"{rmse:.4f}",
                ]
            )
    return report.table(["model", "table", "fit", "memory", "held-out NLL", "held-out RMSE"], rows)


def render() -> None:
    """Write the tables of all lines into the docs."""
    figures = Figures(LINES.read_text())
    peers = ", ".join(f"{name} {figures.versions[name]}" for name in PEERS if name in figures.versions)
    settings = "; ".join(f"{name}: {size.trees} trees, learning rate {size.rate}" for name, size in SIZES.items())
    versions = f"softwood {figures.versions['sglb']}, {peers}"
    text = f"""
Processor time of one thread (user and system) on {report.processor()}; the least of several runs.
{versions}. {settings}. Depth 6, 255 bins.

{ratio_table(figures)}

CatBoost's `posterior_sampling` puts noise into the scores of splits and none into the leaves; `sampling = split-noise`
is the same model, and the one to compare loss by loss. With `sampling = posterior` a chain ends at a draw, which is
wide of the mean by design: it is made to be averaged.

{nll_table(figures)}

All figures. Memory is what the process grew by at its peak during the fit, beyond the array that it was given (for ours
that includes a copy of it, column by column); scores are on 100,000 fresh rows.

{quality_table(figures)}
"""
    report.write("peers", text)
    print(text)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(SIZES), help="comma-separated")
    parser.add_argument("--contestants", default=",".join(CONTESTANTS), help="comma-separated")
    parser.add_argument("--peers", type=Path, default=report.ROOT / ".venv-peers", help="environment of the peers")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    parser.add_argument("--render", action="store_true", help="measure nothing; write the tables")
    args = parser.parse_args()
    if args.fresh:
        LINES.unlink(missing_ok=True)
    if not args.render:
        run(args.sizes.split(","), args.contestants.split(","), args.peers)
    render()


if __name__ == "__main__":
    main()
