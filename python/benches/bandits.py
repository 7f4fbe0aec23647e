"""Regret of agents on the public bandit problems, beside the published shares of random choices.

    python -m benches.bandits                         # measure what has no line yet, and write the page
    python -m benches.bandits --agents vsgbm --render

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
AGENTS = ("linear", "tree", "vst")
QUICK_AGENTS = ("linear", "tree")
N_STEPS, N_SEEDS = 2000, 2
ALL_STEPS, ALL_SEEDS = 0, 5
"""Number of steps that stands for all of them, and number of seeds of such runs."""
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


def job_of(problem: str, agent: str) -> dict[str, Any]:
    """Return a job of the comparison of agents."""
    return {"problem": problem, "agent": agent, "steps": N_STEPS, "seeds": N_SEEDS, "seed": 0, "growth": 1.3}


def full_job(problem: str, agent: str) -> dict[str, Any]:
    """Return a job of the published number of steps and seeds."""
    return {"problem": problem, "agent": agent, "steps": ALL_STEPS, "seeds": ALL_SEEDS, "seed": 0, "growth": 1.3}


def growth_job(problem: str, agent: str, growth: float) -> dict[str, Any]:
    """Return a job of the choice of `refit_growth`, with other seeds."""
    return {"problem": problem, "agent": agent, "steps": N_STEPS, "seeds": 4, "seed": 100, "growth": growth}


def share(line: dict[str, Any] | None) -> str:
    """Return the regret as a share of that of random choices."""
    return f"{line['mean'] / line['uniform_regret']:.3f}" if line else ""


def agents_table(agents: tuple[str, ...]) -> str:
    """Compare the agents on every problem."""
    rows = []
    for problem in PROBLEMS:
        name, published = PUBLISHED.get(problem, ("", 0.0))
        cells = [share(find(job_of(problem, agent))) for agent in agents]
        rows.append([problem, *cells, f"{published:.3f} ({name})" if name else ""])
    return report.table(["problem", *(f"`{agent}`" for agent in agents), "published, all steps"], rows)


def full_table() -> str:
    """Compare the quick agents with the published ones in all steps."""
    rows = []
    for problem, (name, published) in PUBLISHED.items():
        cells = [share(find(full_job(problem, agent))) for agent in QUICK_AGENTS]
        rows.append([problem, *cells, f"{published:.3f} ({name})"])
    return report.table(["problem", *(f"`{agent}`" for agent in QUICK_AGENTS), "best published"], rows)


def growth_table() -> str:
    """Compare the factors of refits with quick agents."""
    rows = []
    for problem in PROBLEMS:
        for agent in QUICK_AGENTS:
            cells = [share(find(growth_job(problem, agent, growth))) for growth in GROWTHS]
            rows.append([f"{problem}, `{agent}`", *cells])
    return report.table(["problem, agent", *map(str, GROWTHS)], rows)


def main() -> None:
    """Measure and write the page."""
    parser = arguments.parser(__doc__)
    arguments.add_data(parser)
    parser.add_argument("--agents", type=lambda text: tuple(text.split(",")), default=AGENTS)
    args = parser.parse_args()
    if not args.render:
        for problem in PROBLEMS:
            for agent in QUICK_AGENTS:
                for growth in GROWTHS:
                    measure(growth_job(problem, agent, growth), args.data)
                if problem in PUBLISHED:
                    measure(full_job(problem, agent), args.data)
        for agent in args.agents:
            for problem in PROBLEMS:
                measure(job_of(problem, agent), args.data)
    report.write("agents", agents_table(args.agents), PAGE)
    report.write("full", full_table(), PAGE)
    report.write("growth", growth_table(), PAGE)


if __name__ == "__main__":
    main()
