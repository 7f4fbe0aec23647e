"""Measures jobs of `benches.regression_peers`: the scores of one model on one standard split of a public table."""

from __future__ import annotations

from typing import Any

import numpy as np

from benches import tables, truth_models, workers
from benches.measure import timed
from benches.truth_problems import Zone
from benches.truth_scores import zone_scores


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Fit and score the model of a job."""
    split = tables.split(job["table"], job["split"])
    x, x_test = split.X.to_numpy(np.float64), split.X_test.to_numpy(np.float64)
    version = workers.imported(truth_models.version_of(job["model"]).split()[0])
    learner = truth_models.learner(job["model"])
    predict, seconds = timed(lambda: learner(x, np.asarray(split.y, np.float64), job["split"]))
    scores = zone_scores(predict(x_test), Zone(x_test, np.asarray(split.y_test, np.float64)), 1.0)
    return {**scores, "seconds": seconds, "version": version}


if __name__ == "__main__":
    workers.serve(measure)
