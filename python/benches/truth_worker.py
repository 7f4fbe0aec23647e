"""Measures jobs of `benches.truth`: one JSON object per line on standard input, one per line on standard output.

`benches.truth` runs it with the interpreter of the environment that has the library of the model.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benches import truth_models, truth_problems
from benches.measure import timed
from benches.truth_scores import zone_scores


@dataclass(frozen=True)
class Job:
    """A fit of a model to the problem of a part, a name and a seed."""

    model: str
    part: str
    name: str
    seed: int


def measure(data: Path, job: Job) -> dict[str, Any]:
    """Fit and score one job."""
    import numpy as np

    problem = truth_problems.problem(data, job.part, job.name, job.seed)
    learner = truth_models.learner(job.model)
    predict, seconds = timed(lambda: learner(problem.x, problem.y, job.seed))
    # synthetic targets have about unit variance: their scores stay in the units of the problem
    is_synthetic = job.part in truth_problems.NAMES
    scale = 1.0 if is_synthetic else float(np.std(problem.y))
    zones = {name: zone_scores(predict(zone.x), zone, scale) for name, zone in problem.zones.items()}
    version = truth_models.version_of(job.model)
    return {**asdict(job), "version": version, "n_train": len(problem.y), "seconds": seconds, "zones": zones}


def main() -> None:
    """Measure the jobs of standard input."""
    data = Path(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(measure(data, Job(**json.loads(line)))), flush=True)


if __name__ == "__main__":
    main()
