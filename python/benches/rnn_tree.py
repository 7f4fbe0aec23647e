"""`rnn-tree` on the problems of its paper (Antoran et al. 2020), beside published figures, `tree` and a JAX version.

Every measurement adds one line to `target/bench/rnn_tree.jsonl`. A measurement that has a line is not repeated, so that
a run can be interrupted and resumed, or be done in parts:

    python -m benches.rnn_tree                             # all parts
    python -m benches.rnn_tree --quick                     # fewer seeds, noise levels, splits and steps
    python -m benches.rnn_tree --parts tables --splits 20
    python -m benches.rnn_tree --parts figure-pulse        # the picture of the pulse
    python -m benches.rnn_tree --parts figure-parity       # the picture of the parity problem
    python -m benches.rnn_tree --render

The table boston is in the folder `gal` of `SOFTWOOD_DATA` (or `--data`), the others come with scikit-learn. The part
`speed` compares with JAX if the interpreter of an environment that has it is given (`--peers`). The results are written
into docs/experiments/rnn-tree.md, and the pictures into docs/img.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from benches import report
from benches.measure import timed
from benches.svg import BLUE, GREY, INK, ORANGE, Frame, caption, dot, polyline

LINES = report.SCRATCH / "rnn_tree.jsonl"
PAGE = report.ROOT / "docs" / "experiments" / "rnn-tree.md"
PICTURES = report.ROOT / "docs" / "img"
PARTS = ("pulse", "parity", "tables", "speed", "figure-pulse", "figure-parity")

LEVELS = (1.0, 4.0, 2.5, 5.0, 1.5, 3.5, 0.5, 2.5)
"""Levels of the pulse on unit cells from -4."""
LEVEL_TOLERANCE = 0.25
"""A level is found if the median prediction in its cell is this near."""
N_PULSE_ROWS, N_PULSE_SEEDS, MAX_PULSE_MSE = 400, 10, 0.01

N_BITS, N_PARITY_ROWS, N_PARITY_SEEDS = 8, 3000, 2
NOISES = tuple(step / 10 for step in range(10))
QUICK_NOISES = (0.0, 0.3, 0.5)
PARITY_TARGETS = {0.0: 0.99, 0.1: 0.99, 0.2: 0.99, 0.3: 0.99, 0.5: 0.90}
"""Accuracies that `rnn-tree` is to reach, by noise."""

N_SPLITS = 3
N_STEPS, QUICK_STEPS, MAX_SECONDS = 3000, 300, 20.0
SPEED_DEPTH, N_SPEED_ROWS, N_SPEED_INPUTS, N_VALIDATION_ROWS = 8, 3000, 8, 600
BATCHES: dict[str, dict[str, Any]] = {"full batch": {"batch_size": N_SPEED_ROWS}, "default batch": {}}


@dataclass(frozen=True)
class Published:
    """A line of table 1 of the paper: mean and standard deviation of three splits."""

    task: str
    rnn: tuple[float, float]
    cart: tuple[float, float]


TABLES = {
    "iris": Published("classification", (0.0, 0.0), (0.0, 0.0)),
    "boston": Published("regression", (0.218, 0.043), (0.311, 0.105)),
    "wine": Published("classification", (0.055, 0.045), (0.092, 0.026)),
    "diabetes": Published("regression", (0.583, 0.079), (0.855, 0.241)),
    "digits": Published("classification", (0.168, 0.018), (0.161, 0.022)),
    "breast": Published("classification", (0.023, 0.008), (0.058, 0.036)),
}

COLUMNS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("RNNTree", {}),
    "single": ("RNNTree", {"n_trees": 1}),
    "tree": ("Tree", {}),
    "tree_unpruned": ("Tree", {"ccp_alpha": 0.0}),
}
"""Estimator and parameters of the columns of the report."""
TITLES = {
    "default": "`rnn-tree`",
    "single": "`rnn-tree`, `n_trees=1`",
    "tree": "`tree`",
    "tree_unpruned": "`tree`, `ccp_alpha=0`",
    "oracle": "true cells",
}


@dataclass(frozen=True)
class Job:
    """One measurement: a column of the report for a setting (noise, table or batch) and a seed."""

    part: str
    setting: str
    column: str
    seed: int = 0


Line = dict[str, Any]


def estimator(column: str, task: str, seed: int, **params: Any) -> Any:
    """Return the estimator of a column, for one thread."""
    import softwood

    kind, own = COLUMNS[column]
    name = kind + ("Regressor" if task == "regression" else "Classifier")
    return getattr(softwood, name)(**own, **params, random_state=seed, n_jobs=1)


# --- measuring


def pulse() -> tuple[Any, Any]:
    """Return x and y of the eight-level pulse."""
    import numpy as np

    x = np.linspace(-4.0, 4.0, N_PULSE_ROWS)
    return x, np.asarray(LEVELS)[pulse_cells(x)]


def pulse_cells(x: Any) -> Any:
    """Return the cell of each point; the last cell has its right end."""
    import numpy as np

    return np.minimum(np.floor(x + 4).astype(int), len(LEVELS) - 1)


def measure_pulse(args: argparse.Namespace, job: Job) -> Line:
    """Fit a tree of depth 3 to the pulse."""
    import numpy as np

    del args
    x, y = pulse()
    model = estimator(job.column, "regression", job.seed, max_depth=3)
    _, seconds = timed(lambda: model.fit(x[:, None], y))
    prediction = model.predict(x[:, None])
    cells = pulse_cells(x)
    medians = np.asarray([np.median(prediction[cells == cell]) for cell in range(len(LEVELS))])
    return {
        "mse": float(((prediction - y) ** 2).mean()),
        "n_levels": int((np.abs(medians - LEVELS) < LEVEL_TOLERANCE).sum()),
        "seconds": seconds,
        "prediction": [round(float(value), 4) for value in prediction],
    }


def parity_rows(noise: float, seed: int) -> tuple[Any, Any]:
    """Draw noisy bits, and whether the number of ones is even."""
    import numpy as np

    rng = np.random.default_rng((seed, round(10 * noise)))
    bits = rng.integers(0, 2, (N_PARITY_ROWS, N_BITS))
    return bits + noise * rng.standard_normal(bits.shape), is_even(bits)


def is_even(bits: Any) -> Any:
    """Return 1 for an even number of ones, otherwise 0."""
    return 1 - bits.sum(1) % 2


def patterns() -> Any:
    """Return all patterns of bits; the first bit is the lowest of the number of the pattern."""
    import numpy as np

    return np.arange(2**N_BITS)[:, None] >> np.arange(N_BITS) & 1


def measure_parity(args: argparse.Namespace, job: Job) -> Line:
    """Fit the parity problem and predict all clean patterns."""
    del args
    X, y = parity_rows(float(job.setting), job.seed)
    clean = patterns()
    if job.column == "oracle":
        return {"accuracy": oracle_accuracy(X, y)}
    depth = N_BITS if COLUMNS[job.column][0] == "RNNTree" else 12
    model = estimator(job.column, "classification", job.seed, max_depth=depth)
    _, seconds = timed(lambda: model.fit(X, y))
    accuracy = float((model.predict(clean.astype(float)) == is_even(clean)).mean())
    return {"accuracy": accuracy, "seconds": seconds}


def oracle_accuracy(X: Any, y: Any) -> float:
    """Return the accuracy of the true partition (every bit divided at 0.5) with the majority label of each cell.

    A cell without rows, or with as many even as odd rows, counts as half right.
    """
    import numpy as np

    cell = ((X > 0.5) << np.arange(N_BITS)).sum(1)
    votes = np.bincount(cell, weights=2 * y - 1, minlength=2**N_BITS)
    truth = 2 * is_even(patterns()) - 1
    return float((1 + np.sign(votes) * truth).mean() / 2)


@cache
def read(data: Path, name: str) -> tuple[Any, Any]:
    """Return features and target of a table of the paper."""
    import pandas as pd
    from sklearn import datasets

    if name == "boston":
        frame = pd.read_parquet(data / "gal" / "boston.parquet")
        return frame.drop(columns="target").to_numpy(float), frame["target"].to_numpy(float)
    found = getattr(datasets, f"load_{'breast_cancer' if name == 'breast' else name}")()
    return found.data, found.target


def measure_table(args: argparse.Namespace, job: Job) -> Line:
    """Fit 90 % of a table, of which the fit takes its validation rows, and score the other 10 %."""
    import numpy as np

    import softwood

    X, y = read(args.data, job.setting)
    task = TABLES[job.setting].task
    order = np.random.default_rng(job.seed).permutation(len(y))
    train, test = np.split(order, [round(0.9 * len(y))])
    model = estimator(job.column, task, job.seed)
    _, seconds = timed(lambda: model.fit(X[train], y[train]))
    scores = softwood.score(model, X[test], y[test])
    found = {"seconds": seconds, "n_test": len(test)}
    if task == "classification":
        return found | {"error": float((model.predict(X[test]) != y[test]).mean()), "nll": scores["nll"]}
    mse = float(((model.predict(X[test]) - y[test]) ** 2).mean() / y[train].var())
    return found | {"error": mse, "nll": -scores["log_likelihood_std"], "coverage_90": scores["coverage_90"]}


def measure_speed(args: argparse.Namespace, job: Job) -> Line:
    """Measure a fit of one network; the seconds of a step are those of a long and of a short fit."""
    n_steps = args.steps
    if job.column == "jax":
        return measure_jax(args.peers, n_steps)
    # the worker of the other environment has the rows, but needs no JAX to draw them
    from benches.rnn_tree_jax import table

    X, y = table(N_SPEED_ROWS, N_SPEED_INPUTS)
    X_val, y_val = table(N_VALIDATION_ROWS, N_SPEED_INPUTS, seed=1)
    params = {"max_depth": SPEED_DEPTH, "n_hidden": 16, "n_restarts": 1, **BATCHES[batch_of(job)]}

    def seconds(n: int) -> float:
        model = estimator("single", "regression", job.seed, n_steps=n, **params)
        return timed(lambda: model.fit(X.T, y, X_val=X_val.T, y_val=y_val))[1]

    n_short = n_steps // 10
    short, long = seconds(n_short), seconds(n_steps)
    return {"seconds": long, "step_seconds": (long - short) / (n_steps - n_short)}


def batch_of(job: Job) -> str:
    """Return the name of the batch of a speed measurement, which is followed by the number of steps."""
    return job.setting.rsplit(",", 1)[0]


def measure_jax(python: Path, n_steps: int) -> Line:
    """Measure the step in JAX on one core."""
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(report.ROOT / "python")}
    command = [str(python), "-m", "benches.rnn_tree_jax", str(n_steps)]
    if shutil.which("taskset"):
        command = ["taskset", "-c", str(max(os.sched_getaffinity(0))), *command]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: Line = json.loads(done.stdout.splitlines()[-1])
    return found


MEASURES: dict[str, Callable[[argparse.Namespace, Job], Line]] = {
    "pulse": measure_pulse,
    "parity": measure_parity,
    "tables": measure_table,
    "speed": measure_speed,
}


def jobs_of(args: argparse.Namespace) -> Iterator[Job]:
    """List the measurements of the parts that are asked for."""
    parts = set(args.parts)
    if "pulse" in parts or "figure-pulse" in parts:
        n_seeds = 1 if "pulse" not in parts else 3 if args.quick else N_PULSE_SEEDS
        yield Job("pulse", "", "tree")
        yield from (Job("pulse", "", "single", seed) for seed in range(n_seeds))
    if "parity" in parts or "figure-parity" in parts:
        columns = ("default", "tree", "tree_unpruned", "oracle")
        for seed in range(1 if args.quick else N_PARITY_SEEDS):
            noises = QUICK_NOISES if args.quick else NOISES
            yield from (Job("parity", f"{noise:.1f}", column, seed) for noise in noises for column in columns)
    if "tables" in parts:
        for split in range(1 if args.quick else args.splits):
            yield from (
                Job("tables", name, column, split) for name in TABLES for column in ("default", "single", "tree")
            )
    if "speed" in parts:
        yield from (Job("speed", f"{batch},{args.steps}", "single") for batch in BATCHES)
        if has_jax(args.peers):
            yield Job("speed", f"full batch,{args.steps}", "jax")
        else:
            print("JAX is not measured: give the interpreter of an environment that has it with --peers")


def has_jax(python: Path) -> bool:
    """Return whether an interpreter has JAX."""
    if not python.exists():
        return False
    command = [str(python), "-c", "import jax"]
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def known_lines() -> dict[Job, Line]:
    """Read the results so far."""
    if not LINES.exists():
        return {}
    lines = [json.loads(line) for line in LINES.read_text().splitlines()]
    return {Job(line["part"], line["setting"], line["column"], line["seed"]): line for line in lines}


def run(args: argparse.Namespace) -> None:
    """Measure what has no line yet: times alone, the rest on several processes."""
    LINES.parent.mkdir(parents=True, exist_ok=True)
    done = known_lines()
    jobs = [job for job in jobs_of(args) if job not in done]
    with LINES.open("a") as file:

        def keep(job: Job, found: Line) -> None:
            file.write(json.dumps(asdict(job) | found) + "\n")
            file.flush()
            shown = {name: value for name, value in found.items() if name != "prediction"}
            print(job.part, job.setting, job.column, job.seed, shown, flush=True)

        with ProcessPoolExecutor(args.processes) as pool:
            tasks = {pool.submit(MEASURES[job.part], args, job): job for job in jobs if job.part != "speed"}
            for future in as_completed(tasks):
                keep(tasks[future], future.result())
        for job in jobs:
            if job.part == "speed":
                keep(job, MEASURES[job.part](args, job))


# --- reporting

Found = dict[Job, Line]


def values(found: Found, part: str, setting: str, column: str, name: str) -> list[float]:
    """Return a figure of all seeds of a column."""
    wanted = [job for job in found if (job.part, job.setting, job.column) == (part, setting, column)]
    return [found[job][name] for job in sorted(wanted, key=lambda job: job.seed)]


def pulse_section(found: Found) -> str:
    """Return the errors on the pulse."""
    errors, levels = (values(found, "pulse", "", "single", name) for name in ("mse", "n_levels"))
    seconds = values(found, "pulse", "", "single", "seconds")
    tree_error, tree_levels = (values(found, "pulse", "", "tree", name)[0] for name in ("mse", "n_levels"))
    rows = [[str(seed), f"{error:.4f}", str(n)] for seed, (error, n) in enumerate(zip(errors, levels, strict=True))]
    rows.append(["`tree`, depth 3", f"{tree_error:.4f}", str(tree_levels)])
    good = sum(e < MAX_PULSE_MSE and n == len(LEVELS) for e, n in zip(errors, levels, strict=True))
    return f"""{report.table(["seed of `rnn-tree`", "MSE", "levels found"], rows)}

With {good} of {len(errors)} seeds the mean squared error is below {MAX_PULSE_MSE} and all eight levels are found
(target: 9 of 10). A fit takes {fmean(seconds):.1f} processor seconds."""


def parity_section(found: Found) -> str:
    """Return the accuracies on the parity problem."""
    columns = ("default", "tree", "tree_unpruned", "oracle")
    rows, met, measured = [], 0, 0
    for noise in NOISES:
        setting = f"{noise:.1f}"
        by_column = {column: values(found, "parity", setting, column, "accuracy") for column in columns}
        if not any(by_column.values()):
            continue
        target = PARITY_TARGETS.get(noise)
        if target and by_column["default"]:
            met, measured = met + (min(by_column["default"]) >= target), measured + 1
        cells = [", ".join(f"{100 * value:.1f}" for value in by_column[column]) for column in columns]
        rows.append([setting, f"{100 * target:.0f}" if target else "", *cells])
    seconds = [line["seconds"] for job, line in found.items() if (job.part, job.column) == ("parity", "default")]
    text = report.table(["noise", "target", *(TITLES[column] for column in columns)], rows)
    return f"""{text}

`rnn-tree` reaches the target with all seeds at {met} of {measured} noise levels. A fit takes {fmean(seconds):.0f}
processor seconds."""


def spread(figures: Sequence[float]) -> str:
    """Format mean and standard deviation."""
    return f"{fmean(figures):.3f} ± {pstdev(figures):.3f}" if figures else ""


def tables_section(found: Found) -> str:
    """Return errors and negative log-likelihoods on the tables of the paper."""
    columns = ("default", "single", "tree")
    rows, wins, n_tables, n_splits = [], dict.fromkeys(columns, 0), 0, set()
    for name, paper in TABLES.items():
        errors = {column: values(found, "tables", name, column, "error") for column in columns}
        if not all(errors.values()):
            continue
        n_splits.add(len(errors["default"]))
        n_tables += 1
        for column in columns:
            # the paper seems to cut digits off: 0.055 is one of the 18 test rows of wine
            wins[column] += fmean(errors[column]) < paper.rnn[0] + 0.001
        scores = [fmean(values(found, "tables", name, column, "nll")) for column in columns]
        seconds = fmean(values(found, "tables", name, "default", "seconds"))
        rows.append(
            [
                name,
                "MSE" if paper.task == "regression" else "error rate",
                *(f"{mean:.3f} ± {deviation:.3f}" for mean, deviation in (paper.rnn, paper.cart)),
                *(spread(errors[column]) for column in columns),
                *(f"{score:.3f}" for score in scores),
                f"{seconds:.1f}",
            ]
        )
    titles = [TITLES[column] for column in columns]
    header = ["table", "measure", "paper: RNN-Tree", "paper: CART", *titles, *(f"NLL: {title}" for title in titles)]
    splits = " or ".join(str(n) for n in sorted(n_splits))
    return f"""Mean and standard deviation; number of splits: {splits}.

{report.table([*header, "processor s of `rnn-tree`"], rows)}

Number of tables at or below the paper's RNN-Tree, of {n_tables}: `rnn-tree` with default parameters {wins["default"]},
with `n_trees=1` {wins["single"]}, `tree` {wins["tree"]}."""


def speed_section(found: Found) -> str:
    """Return the times of fits and steps; those of the largest number of steps that was measured."""
    n_steps = max(int(job.setting.rsplit(",", 1)[1]) for job in found if job.part == "speed")
    rows, ours = [], 0.0
    for batch in BATCHES:
        line = found.get(Job("speed", f"{batch},{n_steps}", "single"))
        if line:
            ours = ours or line["step_seconds"]
            rows.append([f"`rnn-tree`, {batch}", f"{1000 * line['step_seconds']:.2f}", f"{line['seconds']:.1f}", ""])
    jax = found.get(Job("speed", f"full batch,{n_steps}", "jax"))
    text = ""
    if jax and ours:
        for form, title in (("direct", "JAX, all leaf probabilities"), ("factored", "JAX, factored sums over leaves")):
            step = jax[form]["step_seconds"]
            cells = [f"{1000 * step:.2f}", f"{n_steps * step:.1f}", f"{ours / step:.2f}"]
            rows.append([f"{title} (full batch)", *cells])
        worst = max(jax[form]["difference"] for form in ("direct", "factored"))
        compilation = " and ".join(f"{jax[form]['compile_seconds']:.1f}" for form in ("direct", "factored"))
        text = f"""

JAX {jax["version"]}, float32. Its objective differs from the formulas in NumPy, node by node in float64, by a relative
{worst:.0e}. The compilation ({compilation} processor seconds) is not counted."""
    header = ["", "processor ms of a step", f"processor s of {n_steps} steps", "step of `rnn-tree` / this step"]
    return f"""{report.table(header, rows)}

Processor: {report.processor()}. Target: at most {MAX_SECONDS:.0f} processor seconds for {N_STEPS} steps, and at most
half the step of JAX.{text}"""


# --- pictures


def legend(entries: Sequence[tuple[str, str, float, str]], left: float) -> list[str]:
    """Return the names of the lines, from left to right: text, color, width and dashes of each."""
    parts = []
    for text, color, width, dashes in entries:
        parts += [polyline([(left, 91.5), (left + 24, 91.5)], color, width, dashes), caption(left + 32, 96, text)]
        left += 60 + 6.6 * len(text)
    return parts


def pulse_picture(found: Found) -> str:
    """Draw the pulse and both trees of depth 3."""
    fits = {column: found.get(Job("pulse", "", column)) for column in ("tree", "single")}
    tree, ours = fits["tree"], fits["single"]
    if not tree or not ours:
        return ""
    frame = Frame(960, 520, 70, 920, 118, 448, (-4.0, 4.0), (0.0, 5.5))
    x, y = (values.tolist() for values in pulse())
    parts = frame.axes(range(-4, 5), range(6), "x", "y")
    parts += [dot(*frame.pixels(*point), 4.5, opacity=0.2) for point in zip(x, y, strict=True)]
    for line, color, width in ((tree, ORANGE, 2.0), (ours, BLUE, 2.0)):
        parts.append(polyline([frame.pixels(*p) for p in zip(x, line["prediction"], strict=True)], color, width))
    parts += [dot(79.0, 91.5, 4.5, opacity=0.4), caption(90, 96, "data")]
    parts += legend(
        [
            (f"tree, depth 3: MSE {tree['mse']:.3f}", ORANGE, 2.0, ""),
            (f"rnn-tree, depth 3: MSE {ours['mse']:.3f}", BLUE, 2.0, ""),
        ],
        150,
    )
    title = "Trees of depth 3 on a pulse with eight levels"
    subtitle = f"{N_PULSE_ROWS} rows without noise. A greedy tree does not find the eight cells with its first splits."
    return frame.picture(title, subtitle, parts)


def parity_picture(found: Found) -> str:
    """Draw the accuracy on the parity problem over the noise."""
    lines = [
        ("oracle", "true cells, majority label", INK, 1.6, "5.6 4.8"),
        ("tree_unpruned", "tree, depth 12, not pruned", GREY, 1.8, ""),
        ("tree", "tree, depth 12", ORANGE, 2.0, ""),
        ("default", "rnn-tree, depth 8", BLUE, 2.6, ""),
    ]
    frame = Frame(960, 520, 80, 920, 118, 448, (0.0, 0.9), (0.4, 1.02))
    parts = frame.axes(NOISES, (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0), "standard deviation of the noise", "accuracy")
    drawn = []
    for column, text, color, width, dashes in lines:
        by_noise = {noise: values(found, "parity", f"{noise:.1f}", column, "accuracy") for noise in NOISES}
        points = [frame.pixels(noise, fmean(figures)) for noise, figures in by_noise.items() if figures]
        if points:
            drawn.append((text, color, width, dashes))
            parts += [polyline(points, color, width, dashes)]
            parts += [dot(*point, 3.4, color) for point in points if not dashes]
    if not drawn:
        return ""
    subtitle = f"{N_PARITY_ROWS} rows of {N_BITS} noisy bits; tested on the {2**N_BITS} clean patterns."
    return frame.picture("Parity of eight bits: accuracy over noise", subtitle, [*parts, *legend(drawn, frame.left)])


# --- page


def write(section: str, text: str) -> None:
    """Replace the text between the markers of a section of the page."""
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    head, rest = PAGE.read_text().split(begin)
    _, tail = rest.split(end)
    PAGE.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}")


def render() -> None:
    """Write tables and pictures of all measurements."""
    found = known_lines()
    measured = {job.part for job in found}
    sections = {"pulse": pulse_section, "parity": parity_section, "tables": tables_section, "speed": speed_section}
    for name, section in sections.items():
        if name in measured:
            text = section(found)
            write(name, text)
            print(f"{name}\n\n{text}\n")
    for name, picture in {"pulse": pulse_picture, "parity": parity_picture}.items():
        drawing = picture(found)
        if drawing:
            (PICTURES / f"rnn-tree-{name}.svg").write_text(drawing)


def names(known: Sequence[str], text: str) -> list[str]:
    """Split a list of names and refuse unknown ones."""
    found = text.split(",")
    unknown = [name for name in found if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return found


def main() -> None:
    """Run the command."""
    data = Path(os.environ.get("SOFTWOOD_DATA", report.ROOT.parent / "shared" / "data"))
    peers = report.ROOT / ".venv-peers" / "bin" / "python"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data)
    parser.add_argument("--parts", type=partial(names, PARTS), default=list(PARTS))
    parser.add_argument("--splits", type=int, default=N_SPLITS, help="number of random splits of each table")
    parser.add_argument("--quick", action="store_true", help="fewer seeds, noise levels, splits and steps")
    parser.add_argument("--peers", type=Path, default=peers, help="interpreter of an environment with JAX")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--fresh", action="store_true", help="delete earlier measurements")
    parser.add_argument("--render", action="store_true", help="only write the page and the pictures")
    args = parser.parse_args()
    args.steps = QUICK_STEPS if args.quick else N_STEPS
    if args.fresh:
        LINES.unlink(missing_ok=True)
    if not args.render:
        run(args)
    render()


if __name__ == "__main__":
    main()
