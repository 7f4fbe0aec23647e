"""Speed of `sglb` beside CatBoost, LightGBM and NGBoost: processor time, one thread each, the same number of trees.

Every measurement runs in a separate process and adds one line to `target/bench/peers.jsonl`. Models are measured in
rotation, and the tables show the minimum over repeats. `--sizes` and `--models` select measurements. Earlier lines are
kept unless `--fresh` is given.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benches import arguments, report
from benches.workers import environment

LINES = report.SCRATCH / "peers.jsonl"
PEERS = ("catboost", "lightgbm", "ngboost")
MB = 1e6


@dataclass(frozen=True)
class Size:
    """Size of a generated table, boosting parameters and number of measurements."""

    rows: int
    columns: int
    trees: int
    rate: float
    repeats: int
    with_ngboost: bool = False

    @property
    def arguments(self) -> list[str]:
        """Return the arguments of `benches.speed_worker`."""
        return [str(self.rows), str(self.columns), str(self.trees), str(self.rate)]


SIZES = {
    "10k x 10": Size(10_000, 10, 1000, 0.05, 5, with_ngboost=True),
    "100k x 20": Size(100_000, 20, 1000, 0.05, 2),
    "1M x 28": Size(1_000_000, 28, 100, 0.1, 3),
}
ONCE = ("ngboost",)
"""Models that are measured once: their fit takes long and no target depends on it."""
MODELS = (
    "catboost",
    "sglb",
    "sglb-split-noise",
    "lightgbm",
    "sgb-constant-noise",
    "sglb-virtual",
    "sglb-split-noise-virtual",
    "sglb-ten",
    "ngboost",
)


def measure(model: str, size: Size, peers: Path) -> dict[str, Any]:
    """Measure one model in the environment of its library."""
    python = peers / "bin" / "python" if model in PEERS else Path(sys.executable)
    command = [str(python), "-m", "benches.speed_worker", model, *size.arguments]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(sizes: list[str], models: list[str], peers: Path) -> None:
    """Measure models in rotation; write one line for each measurement."""
    for name in sizes:
        size = SIZES[name]
        for repeat in range(size.repeats):
            for model in models:
                if (model in ONCE and repeat > 0) or (model == "ngboost" and not size.with_ngboost):
                    continue
                found = measure(model, size, peers)
                report.add_line(LINES, {"size": name, "model": model, **found})
                print(f"{name} {model}: {found['fit']:.2f} s", file=sys.stderr)


class Figures:
    """The minimum over repeats by size, model and measure."""

    def __init__(self, lines: str) -> None:
        self.found: dict[tuple[str, str, str], float] = {}
        self.versions: dict[str, str] = {}
        for line in lines.splitlines():
            entry = json.loads(line)
            size, model = entry.pop("size"), entry.pop("model")
            self.versions[model] = entry.pop("version")
            entry.pop("numpy")
            for name, value in entry.items():
                key = (size, model, name)
                self.found[key] = min(value, self.found.get(key, value))

    def get(self, size: str, model: str, measure: str) -> float | None:
        """Return a figure; None if it was not measured."""
        return self.found.get((size, model, measure))


@dataclass(frozen=True)
class RatioTarget:
    """A largest accepted ratio of two times, each given as model and measure."""

    label: str
    ours: tuple[str, str]
    theirs: tuple[str, str]
    max_ratio: float
    factor: float = 1.0
    """Factor of the time of the other library."""


def ratio_targets(size: str) -> list[RatioTarget]:
    """List the ratios for a size."""
    against_catboost = 1 / 5 if size == "10k x 10" else 1 / 3
    return [
        RatioTarget(
            "fit, mean and scale, one chain / CatBoost", ("sglb", "fit"), ("catboost", "fit"), against_catboost
        ),
        RatioTarget(
            "the same, noise in the scores of splits",
            ("sglb-split-noise", "fit"),
            ("catboost", "fit"),
            against_catboost,
        ),
        RatioTarget("fit, ten members / ten CatBoost fits", ("sglb-ten", "fit"), ("catboost", "fit"), 1 / 6, 10.0),
        RatioTarget(
            "predict, ten virtual members / CatBoost",
            ("sglb-virtual", "predict_virtual"),
            ("catboost", "predict_virtual"),
            1 / 2,
        ),
        RatioTarget("fit, mean and scale / LightGBM's mean", ("sglb", "fit"), ("lightgbm", "fit"), 1.3),
        RatioTarget("fit, mean alone / LightGBM's mean", ("sgb-constant-noise", "fit"), ("lightgbm", "fit"), 1.0),
    ]


def ratio_table(figures: Figures) -> str:
    """Return the table of ratios with their targets."""
    rows = []
    for size in SIZES:
        for target in ratio_targets(size):
            ours, theirs = figures.get(size, *target.ours), figures.get(size, *target.theirs)
            if ours is None or theirs is None:
                continue
            theirs *= target.factor
            ratio = ours / theirs
            seconds = [f"{ours:.2f} s", f"{theirs:.2f} s"]
            is_met = "yes" if ratio <= target.max_ratio else "**no**"
            rows.append([target.label, size, *seconds, f"{ratio:.2f}", f"{target.max_ratio:.2f}", is_met])
    return report.table(["what", "table", "ours", "theirs", "ratio", "at most", "met"], rows)


def nll_table(figures: Figures) -> str:
    """Return the table of test losses with those of CatBoost; the target is a loss that is not higher."""
    pairs = [
        ("noise in the scores of splits / one model", ("sglb-split-noise", "nll"), ("catboost", "nll")),
        ("its ten virtual members", ("sglb-split-noise-virtual", "nll"), ("catboost", "nll_virtual")),
        ("one draw of the posterior / one model", ("sglb", "nll"), ("catboost", "nll")),
        ("ten virtual members of one chain", ("sglb-virtual", "nll"), ("catboost", "nll_virtual")),
        ("ten members / ten virtual members", ("sglb-ten", "nll"), ("catboost", "nll_virtual")),
    ]
    rows = []
    for size in SIZES:
        for label, ours, theirs in pairs:
            a, b = figures.get(size, *ours), figures.get(size, *theirs)
            if a is not None and b is not None:
                rows.append([label, size, f"{a:.3f}", f"{b:.3f}", "yes" if a <= b else "**no**"])
    return report.table(["held-out NLL", "table", "ours", "CatBoost", "no worse"], rows)


LABELS = {
    "catboost": "CatBoost, one model",
    "catboost-virtual": "CatBoost, ten virtual members",
    "ngboost": "NGBoost",
    "lightgbm": "LightGBM (no scale)",
    "sglb": "`sglb`, one chain",
    "sglb-virtual": "`sglb`, ten virtual members",
    "sglb-ten": "`sglb`, ten members",
    "sglb-split-noise": "`sglb`, `langevin_noise = split-noise`",
    "sglb-split-noise-virtual": "the same, ten virtual members",
    "sgb-constant-noise": "`sgb`, `noise = constant`",
}


def quality_table(figures: Figures) -> str:
    """Return the table of times, memory and test scores: a faster model must not be a worse one."""
    rows = []
    for size in SIZES:
        for row, label in LABELS.items():
            model, nll = (row, "nll")
            if row == "catboost-virtual":
                model, nll = ("catboost", "nll_virtual")
            seconds = figures.get(size, model, "fit")
            if seconds is None:
                continue
            loss, rmse = figures.get(size, model, nll), figures.get(size, model, "rmse")
            memory = figures.get(size, model, "memory")
            rows.append(
                [
                    label,
                    size,
                    f"{seconds:.2f} s",
                    "" if memory is None else f"{memory / MB:.0f} MB",
                    "" if loss is None else f"{loss:.3f}",
                    "" if rmse is None or model != row else f"{rmse:.4f}",
                ]
            )
    return report.table(["model", "table", "fit", "memory", "held-out NLL", "held-out RMSE"], rows)


def render() -> None:
    """Write the tables of all measurements into the docs."""
    figures = Figures(LINES.read_text())
    peers = ", ".join(f"{name} {figures.versions[name]}" for name in PEERS if name in figures.versions)
    settings = "; ".join(f"{name}: {size.trees} trees, learning rate {size.rate}" for name, size in SIZES.items())
    versions = f"softwood {figures.versions['sglb']}, {peers}"
    text = f"""
Processor time of one thread (user and system) on {report.processor()}; the least of several runs.
{versions}. {settings}. Depth 6, 255 bins.

{ratio_table(figures)}

CatBoost's `posterior_sampling` puts noise into the scores of splits and none into the leaves;
`langevin_noise = split-noise` is the same model, and the one to compare loss by loss. With `langevin_noise = posterior`
a chain ends at a draw, which is wide of the mean by design: it is made to be averaged.

{nll_table(figures)}

All figures. Memory is what the process grew by at its peak during the fit, beyond the array that it was given (for ours
that includes a copy of it, column by column); scores are on 100,000 fresh rows.

{quality_table(figures)}
"""
    report.write("peers", text)
    print(text)


def main() -> None:
    """Measure and write."""
    parser = arguments.parser(__doc__)
    arguments.add_fresh(parser)
    arguments.add_peers(parser)
    parser.add_argument("--sizes", default=",".join(SIZES), help="comma-separated")
    parser.add_argument("--models", default=",".join(MODELS), help="comma-separated")
    args = parser.parse_args()
    if args.fresh:
        LINES.unlink(missing_ok=True)
    if not args.render:
        run(args.sizes.split(","), args.models.split(","), args.peers)
    render()


if __name__ == "__main__":
    main()
