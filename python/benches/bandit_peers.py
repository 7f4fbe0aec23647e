"""Regret of Softwood's agents beside CatBoost, NGBoost and BART on the same drawn bandit problems.

    python -m benches.bandit_peers                        # measure what has no line yet, and write the page
    python -m benches.bandit_peers --agents sglb,catboost --problems mushroom
    python -m benches.bandit_peers --render

Every run adds one line to `target/bench/bandit_peers.jsonl`. The results are written into docs/experiments/bandits.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from benches import arguments, report, workers
from benches.bandit_agents import PEERS
from benches.bandit_problems import PROBLEMS

LINES = report.SCRATCH / "bandit_peers.jsonl"
PAGE = report.EXPERIMENTS / "bandits.md"
OURS = ("linear", "tree", "sglb", "vst")
AGENTS = (*OURS, *PEERS)
N_STEPS, N_SEEDS = 1000, 2


def jobs_of(args: argparse.Namespace) -> list[workers.Job]:
    """List the runs, seed by seed, so that an interrupted bench has whole tables."""
    return [
        {"problem": problem, "agent": agent, "steps": N_STEPS, "seed": seed}
        for seed in range(args.seeds)
        for agent in args.agents
        for problem in args.problems
    ]


def cell(lines: list[dict[str, Any]]) -> str:
    """Return the share of the regret of random choices: the mean over the seeds, and that of each seed."""
    if not lines:
        return ""
    shares = [line["regret"] / line["uniform_regret"] for line in lines]
    each = f" ({', '.join(f'{share:.2f}' for share in shares)})" if len(shares) > 1 else ""
    return f"{fmean(shares):.3f}{each}"


def own_lines(problem: str, agent: str) -> list[dict[str, Any]]:
    """Return the lines of an agent on a problem, seed by seed."""
    job = {"problem": problem, "agent": agent, "steps": N_STEPS}
    found = [line for line in report.read_lines(LINES) if workers.is_result(line, job)]
    return sorted(found, key=lambda line: int(line["seed"]))


def title(agent: str) -> str:
    """Return the name of an agent in tables."""
    return PEERS[agent][0] if agent in PEERS else f"`{agent}`"


def table(*, of_seconds: bool) -> str:
    """Compare the agents on every problem."""
    rows = []
    for agent in AGENTS:
        lines = [own_lines(problem, agent) for problem in PROBLEMS]
        if of_seconds:
            cells = [f"{fmean(line['seconds'] for line in own):.1f}" if own else "" for own in lines]
        else:
            cells = [cell(own) for own in lines]
        if any(cells):
            rows.append([title(agent), *cells])
    return report.table(["processor seconds of a run" if of_seconds else "agent", *PROBLEMS], rows)


def render() -> None:
    """Write the tables into the page."""
    lines = report.read_lines(LINES)
    known = sorted({line["seed"] for line in lines})
    seeds = f"seed{'s' if len(known) > 1 else ''} {', '.join(map(str, known))}"
    text = f"""
{report.versions(lines)}, one thread of {report.processor()}. {N_STEPS} steps, {seeds}; the regret as a share of
that of random choices on the same contexts. Means over seeds have the figure of each seed in brackets.

{table(of_seconds=False)}

{table(of_seconds=True)}
"""
    report.write("peers", text, PAGE)


def main() -> None:
    """Measure and write the page."""
    parser = arguments.parser(__doc__)
    arguments.add_data(parser)
    arguments.add_fresh(parser)
    arguments.add_peers(parser)
    parser.add_argument("--agents", type=arguments.names(AGENTS), default=list(AGENTS))
    parser.add_argument("--problems", type=arguments.names(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    args = parser.parse_args()
    if args.fresh:
        LINES.unlink(missing_ok=True)
    if not args.render:

        def python_of(job: workers.Job) -> Path:
            return args.peers / "bin" / "python" if job["agent"] in PEERS else Path(sys.executable)

        workers.run(jobs_of(args), LINES, "benches.bandit_worker", python_of, args.data)
    render()


if __name__ == "__main__":
    main()
