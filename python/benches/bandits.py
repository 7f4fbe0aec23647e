"""Regret of agents on the public bandit problems, beside the published shares of random choices.

    python -m benches.bandits                         # measure what has no line yet, and write the page
    python -m benches.bandits --agents linear,tree    # leave out the agents that take minutes or hours

Every comparison adds one line to `target/bench/bandits.jsonl`; one that has a line is not repeated. The program
`target/release/softwood` runs the agents on the tables of the folder `bandit` of `SOFTWOOD_DATA` (or `--data`). The
results are written into docs/experiments/bandits.md.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from benches import arguments, report
from benches.workers import is_result

LINES = report.SCRATCH / "bandits.jsonl"
PAGE = report.EXPERIMENTS / "bandits.md"
PROGRAM = report.ROOT / "target" / "release" / "softwood"
PROBLEMS = ("financial", "exploration", "mushroom", "jester", "statlog_shuttle")
SEEDS = {"linear": 5, "tree": 5, "vst": 1, "vsgbm": 1, "sglb": 1}
"""Number of seeds of each agent; the paper has five."""
ALL_STEPS = 0
"""Number of steps that stands for all of them."""
GROWTHS = (1.1, 1.2, 1.3, 1.5, 1.8)
PUBLISHED = {
    "financial": ("VST", 357.47 / 1682.05),
    "exploration": ("XBART", 5039.93 / 18904.95),
    "mushroom": ("VST", 1412.55 / 1791.28),
    "jester": ("SGLB", 5762.89 / 7845.28),
}
"""Best published agent (Cinquin et al. 2023, table 3) and its regret over that of random choices, in all steps."""


def find(job: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a job, if it has one."""
    return next((line for line in report.read_lines(LINES) if is_result(line, job)), None)


def measure(job: dict[str, Any], data: Path) -> None:
    """Run an agent on a problem, unless it has a line."""
    if find(job):
        return
    flags = ["--agent", job["agent"], "--seeds", str(job["seeds"])]
    flags += ["--steps", str(job["steps"])] if job["steps"] != ALL_STEPS else []
    flags += ["--seed", str(job["seed"]), "--refit-growth", str(job["growth"]), "--data", str(data), "--json"]
    command = [str(PROGRAM), "bandit", job["problem"], *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)["agents"][0]
    values = {name: found[name] for name in ("mean", "sd", "uniform_regret", "simple_mean", "seconds")}
    report.add_line(LINES, {**job, **values})


def full_job(problem: str, agent: str) -> dict[str, Any]:
    """Return a job of the published number of steps."""
    return {"problem": problem, "agent": agent, "steps": ALL_STEPS, "seeds": SEEDS[agent], "seed": 0, "growth": 1.3}


def growth_job(problem: str, growth: float) -> dict[str, Any]:
    """Return a job of the choice of `refit_growth`, with other seeds."""
    return {"problem": problem, "agent": "tree", "steps": 2000, "seeds": 4, "seed": 100, "growth": growth}


def share(line: dict[str, Any] | None) -> str:
    """Return the regret as a share of that of random choices."""
    return f"{line['mean'] / line['uniform_regret']:.3f}" if line else ""


def full_table() -> str:
    """Compare the agents with the published ones in all steps."""
    rows = []
    for problem in PROBLEMS:
        name, published = PUBLISHED.get(problem, ("", 0.0))
        cells = [share(find(full_job(problem, agent))) for agent in SEEDS]
        rows.append([problem, *cells, f"{published:.3f} ({name})" if name else ""])
    heads = [f"`{agent}`, {n} {'seed' if n == 1 else 'seeds'}" for agent, n in SEEDS.items()]
    return report.table(["problem", *heads, "best published"], rows)


def growth_table() -> str:
    """Compare the factors of refits with a quick agent."""
    rows = [[problem, *(share(find(growth_job(problem, growth))) for growth in GROWTHS)] for problem in PROBLEMS]
    return report.table(["problem", *map(str, GROWTHS)], rows)


def main() -> None:
    """Measure and write the page."""
    parser = arguments.parser(__doc__)
    arguments.add_data(parser)
    parser.add_argument("--agents", type=lambda text: tuple(text.split(",")), default=tuple(SEEDS))
    args = parser.parse_args()
    if not args.render:
        for problem in PROBLEMS:
            for growth in GROWTHS:
                measure(growth_job(problem, growth), args.data)
        for agent in args.agents:
            for problem in PROBLEMS:
                measure(full_job(problem, agent), args.data)
    report.write("full", full_table(), PAGE)
    report.write("growth", growth_table(), PAGE)


if __name__ == "__main__":
    main()
