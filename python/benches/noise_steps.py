"""`gp-rnn-tree` on the noise problem of Antoran et al. 2020 (figure 2), beside a process with a neural noise model.

1200 equispaced points in [-2, 1]; the function is `-x^3 + x^2`, and the logarithm of the noise's standard deviation has
four steps. The targets are the same for all restarts, whose seeds differ; both models have ten restarts.

    python -m benches.noise_steps                 # measure and write table and picture
    python -m benches.noise_steps --render        # only write them

Every fit adds one line to `target/bench/noise_steps.jsonl`; a fit that has a line is not repeated. The results are
written into docs/experiments/gp.md and docs/img/gp-rnn-tree-noise.svg.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Any

from benches import report
from benches.measure import timed
from benches.svg import Frame, caption, polyline

LINES = report.SCRATCH / "noise_steps.jsonl"
PAGE = report.ROOT / "docs" / "experiments" / "gp.md"
PICTURE = report.ROOT / "docs" / "img" / "gp-rnn-tree-noise.svg"
N_ROWS = 1200
N_RESTARTS = 10
EDGES = (-2.0, -1.25, -0.5, 0.25, 1.0)
LOG_SCALES = (0.0, 2 / 3, 2.0, 10 / 3)
N_GRID = 241
MAX_ERROR = 0.25
"""Largest error of the log scale of a step that counts as found."""
N_ROUNDS = 5
"""Rounds of process and network of the neural noise model."""
HIDDEN = (50,)
MODELS = {"tree": "`gp-rnn-tree`", "neural": "GP with a neural noise model", "constant": "`gp`"}


def problem(seed: int = 0) -> tuple[Any, Any]:
    """Return the points and the targets."""
    import numpy as np

    x = np.linspace(EDGES[0], EDGES[-1], N_ROWS)
    noise = np.random.default_rng(seed).standard_normal(N_ROWS)
    return x, x**2 - x**3 + np.exp(true_log_scale(x)) * noise


def true_log_scale(x: Any) -> Any:
    """Return the logarithm of the noise's standard deviation."""
    import numpy as np

    return np.asarray(LOG_SCALES)[np.clip(np.searchsorted(EDGES, x, side="right") - 1, 0, 3)]


def grid() -> Any:
    """Return the points at which noise is compared."""
    import numpy as np

    return np.linspace(EDGES[0], EDGES[-1], N_GRID)


def fit_tree(x: Any, y: Any, seed: int) -> Any:
    """Return the log scale of the noise on the grid."""
    import numpy as np

    import softwood

    model = softwood.HeteroscedasticGPRegressor(random_state=seed, n_jobs=1).fit(x[:, None], y)
    return 0.5 * np.log(model.predict_dist(grid()[:, None]).data)


def fit_constant(x: Any, y: Any, seed: int) -> Any:
    """Return the log scale of the noise of a process with constant noise."""
    import numpy as np

    import softwood

    model = softwood.GPRegressor(random_state=seed, n_jobs=1).fit(x[:, None], y)
    return 0.5 * np.log(model.predict_dist(grid()[:, None]).data)


def fit_neural(x: Any, y: Any, seed: int) -> Any:
    """Alternate between a process with given noise of each row and a network of the logarithms of its squared errors.

    Both are scikit-learn's. The expectation of the logarithm of a squared Normal error is that of its variance minus
    1.27. The network stops early by a tenth of the rows.
    """
    import warnings

    import numpy as np
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern
    from sklearn.neural_network import MLPRegressor

    sd = y.std()
    target = (y - y.mean()) / sd
    inputs, new = (x[:, None] - x.mean()) / x.std(), (grid()[:, None] - x.mean()) / x.std()
    log_variance = np.zeros(len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(N_ROUNDS):
            kernel = ConstantKernel(1.0) * Matern(1.0, nu=2.5)
            process = GaussianProcessRegressor(kernel, alpha=np.exp(log_variance), random_state=seed).fit(
                inputs, target
            )
            mean, std = process.predict(inputs, return_std=True)
            squares = np.log((target - mean) ** 2 + std**2 + 1e-12) + 1.27
            options = {"early_stopping": True, "max_iter": 2000, "learning_rate_init": 0.01}
            network = MLPRegressor(hidden_layer_sizes=HIDDEN, random_state=seed, **options)
            network.fit(inputs, squares)
            log_variance = network.predict(inputs)
    return 0.5 * network.predict(new) + math.log(sd)


FITS = {"tree": fit_tree, "neural": fit_neural, "constant": fit_constant}


def known_lines() -> list[dict[str, Any]]:
    """Read the results so far."""
    return [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []


def run() -> None:
    """Fit what has no line yet."""
    LINES.parent.mkdir(parents=True, exist_ok=True)
    done = {(line["model"], line["seed"]) for line in known_lines()}
    x, y = problem()
    for seed in range(N_RESTARTS):
        for name in MODELS:
            if (name, seed) in done or (name == "constant" and seed > 0):
                continue
            found, seconds = timed(lambda name=name, seed=seed: FITS[name](x, y, seed))  # type: ignore[misc]
            line = {"model": name, "seed": seed, "seconds": seconds, "log_scale": [float(m) for m in found]}
            with LINES.open("a") as file:
                file.write(json.dumps(line) + "\n")


# --- reporting


def step_means(log_scale: list[float]) -> list[float]:
    """Average a log scale over each step, without a twentieth of the step at its ends."""
    points = [float(x) for x in grid()]
    means = []
    for low, high in pairwise(EDGES):
        margin = (high - low) / 20
        inside = [m for x, m in zip(points, log_scale, strict=True) if low + margin < x < high - margin]
        means.append(fmean(inside))
    return means


def curves(name: str) -> list[list[float]]:
    """Return the log scales of all restarts of a model."""
    lines = sorted((line for line in known_lines() if line["model"] == name), key=lambda line: int(line["seed"]))
    return [line["log_scale"] for line in lines]


def spread(name: str) -> float:
    """Return the standard deviation over the restarts, averaged over the grid."""
    return fmean(pstdev(at) for at in zip(*curves(name), strict=True))


def summary() -> str:
    """Compare the models."""
    rows = []
    for name, title in MODELS.items():
        means = [step_means(curve) for curve in curves(name)]
        errors = [[abs(m - true) for m, true in zip(of, LOG_SCALES, strict=True)] for of in means]
        found = sum(max(of) < MAX_ERROR for of in errors)
        centres = [fmean(of) for of in zip(*means, strict=True)]
        seconds = fmean(line["seconds"] for line in known_lines() if line["model"] == name)
        row = [title, *(f"{centre:.2f}" for centre in centres), f"{max(max(of) for of in errors):.2f}"]
        rows.append([*row, f"{found} of {len(means)}", f"{spread(name):.3f}", f"{seconds:.1f}"])
    truth = ["truth", *(f"{m:.2f}" for m in LOG_SCALES), "", "", "", ""]
    header = ["model", *(f"step {step}" for step in range(1, 5)), "largest error", "all steps found", "spread", "fit s"]
    return report.table(header, [truth, *rows])


def draw() -> str:
    """Draw the log scales of all restarts."""
    frame = Frame(960, 520, 80, 920, 118, 448, (EDGES[0], EDGES[-1]), (-1.0, 4.0))
    points = [float(x) for x in grid()]
    parts = frame.axes((-2, -1, 0, 1), (-1, 0, 1, 2, 3, 4), "x", "log noise scale")
    colors = {"neural": "#d08770", "tree": "#2f6db5"}
    for name, color in colors.items():
        for curve in curves(name):
            line = [frame.pixels(x, m) for x, m in zip(points, curve, strict=True)]
            parts.append(polyline(line, color, 1.2))
    truth = [frame.pixels(x, float(m)) for x, m in zip(points, true_log_scale(grid()), strict=True)]
    parts.append(polyline(truth, "#1f2328", 1.6, "5 4"))
    entries = [("true noise", "#1f2328", "5 4"), ("gp-rnn-tree", colors["tree"], "")]
    left = frame.left
    for text, color, dashes in [*entries, ("neural noise model", colors["neural"], "")]:
        parts += [polyline([(left, 91.5), (left + 24, 91.5)], color, 2.0, dashes), caption(left + 32, 96, text)]
        left += 60 + 6.6 * len(text)
    title = "Noise that has four steps"
    subtitle = f"{N_ROWS} rows; {N_RESTARTS} restarts of Gaussian processes with two models of their noise."
    return frame.picture(title, subtitle, parts)


def render() -> None:
    """Write the table and the picture."""
    begin, end = "<!-- noise -->", "<!-- /noise -->"
    head, rest = PAGE.read_text(encoding="utf-8").split(begin)
    _, tail = rest.split(end)
    PAGE.write_text(f"{head}{begin}\n\n{summary().strip()}\n\n{end}{tail}", encoding="utf-8")
    PICTURE.write_text(draw(), encoding="utf-8")


def main() -> None:
    """Measure and write the report."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # read when numpy is imported
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--render", action="store_true", help="only write the table and the picture")
    args = parser.parse_args()
    if args.fresh:
        LINES.unlink(missing_ok=True)
    if not args.render:
        run()
    render()


if __name__ == "__main__":
    main()
