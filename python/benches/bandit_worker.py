"""Measures jobs of `benches.bandit_peers`: the regret of one agent on one drawn problem."""

from __future__ import annotations

from typing import Any

from benches import bandit_agents, bandit_problems, report, workers
from benches.measure import timed


def agent_of(name: str, n_arms: int, seed: int) -> bandit_agents.Agent:
    """Return an agent without experience."""
    if name in bandit_agents.PEERS:
        return bandit_agents.PeerAgent(bandit_agents.PEERS[name][1], n_arms, seed)
    return bandit_agents.SoftwoodAgent(name, n_arms, seed)


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Run the agent of a job."""
    name, seed = job["agent"], job["seed"]
    problem = bandit_problems.draw(job["problem"], job["steps"], seed, report.data_folder())
    problem = bandit_agents.encoded(problem, name)
    version = workers.imported(name if name in bandit_agents.PEERS else "softwood")
    agent = agent_of(name, problem.n_arms, seed)
    regret, seconds = timed(lambda: bandit_agents.regret_of(agent, problem))
    return {
        "regret": regret,
        "uniform_regret": float(problem.regrets().mean(axis=1).sum()),
        "seconds": seconds,
        "version": version,
    }


if __name__ == "__main__":
    workers.serve(measure)
