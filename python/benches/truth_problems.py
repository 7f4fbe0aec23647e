"""Regression problems with zones: the training distribution (`data`), a hole in it (`gap`), and outside (`beyond`).

Synthetic problems in one, three and eight dimensions have a known true mean; gap splits and random splits of public
tables have none. A problem is made from its name and a seed alone. Synthetic targets have about unit variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
Random = np.random.Generator
Ranges = tuple[tuple[float, float], ...]

MAX_ROWS = 2000
"""Training rows of a public table; larger tables are subsampled."""
MAX_TEST_ROWS = 1000
N_ZONE_ROWS = 300
MIN_VALUES = 4
"""Inputs with fewer distinct values have no middle third."""

GAL = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")
EVANS = ("airfoil", "autompg", "autos", "bike", "elevators", "parkinsons", "pol", "skillcraft", "sml", "stock")


@dataclass(frozen=True)
class Zone:
    """Test rows of one zone; the true mean is None for public tables."""

    x: Array
    y: Array
    mean: Array | None = None


@dataclass(frozen=True)
class Problem:
    """Training rows and test zones."""

    x: Array
    y: Array
    zones: dict[str, Zone]


# --- one dimension

N_ROWS_1 = 160
DATA_1 = ((-3.0, -0.8), (0.8, 3.0))
GAP_1 = ((-0.8, 0.8),)
BEYOND_1 = ((-4.5, -3.0), (3.0, 4.5))
NOISE_1 = 0.1


def uniform_on(ranges: Ranges, n_rows: int, random: Random) -> Array:
    """Draw one column of values, uniform on the union of intervals."""
    lengths = np.array([high - low for low, high in ranges])
    chosen = random.choice(len(ranges), n_rows, p=lengths / lengths.sum())
    lows = np.array([low for low, _ in ranges])
    return (lows[chosen] + lengths[chosen] * random.uniform(size=n_rows))[:, None]


def fourier_draw(lengths: Array, random: Random, n_features: int = 2000) -> Function:
    """Draw a function of a Gaussian process: unit variance, squared exponential kernel, by random Fourier features."""
    frequencies = random.standard_normal((len(lengths), n_features)) / lengths[:, None]
    phases = random.uniform(0, 2 * np.pi, n_features)
    weights = random.standard_normal(n_features) * np.sqrt(2 / n_features)
    return lambda x: np.asarray(np.cos(x @ frequencies + phases) @ weights)


def gp_1(length: float) -> Callable[[Random], Function]:
    """Return a generator of functions with the given length scale."""
    return lambda random: fourier_draw(np.array([length]), random)


def steps(random: Random) -> Function:
    """Draw a step function with about one step per unit of length."""
    edges = np.sort(random.uniform(-4.5, 4.5, 1 + random.poisson(8)))
    levels = random.standard_normal(len(edges) + 1)
    return lambda x: np.asarray(levels[np.searchsorted(edges, x[:, 0])])


def kinks(random: Random) -> Function:
    """Draw a continuous piecewise linear function with about one kink per unit of length."""
    inner = np.sort(random.uniform(-4.5, 4.5, 1 + random.poisson(6)))
    edges = np.concatenate([[-4.6], inner, [4.6]])
    levels = random.standard_normal(len(edges))
    return lambda x: np.asarray(np.interp(x[:, 0], edges, levels))


def constant_noise(x: Array) -> Array:
    """Return the same standard deviation for all rows."""
    return np.full(len(x), NOISE_1)


def varying_noise(x: Array) -> Array:
    """Return a standard deviation between 0.03 and 0.25."""
    return np.asarray(0.03 + 0.22 / (1 + np.exp(-2 * x[:, 0])))


ONE: dict[str, tuple[Callable[[Random], Function], Function]] = {
    "gp 0.5": (gp_1(0.5), constant_noise),
    "gp 1": (gp_1(1.0), constant_noise),
    "gp 2": (gp_1(2.0), constant_noise),
    "varying noise": (gp_1(1.0), varying_noise),
    "steps": (steps, constant_noise),
    "kinks": (kinks, constant_noise),
}
"""One-dimensional problems: the true mean and the standard deviation of the noise."""


@dataclass(frozen=True)
class Curve:
    """A function of one input with its noise."""

    function: Function
    noise: Function

    def zone(self, ranges: Ranges, n_rows: int, random: Random) -> Zone:
        """Draw rows with inputs that are uniform on the union of intervals."""
        x = uniform_on(ranges, n_rows, random)
        mean = self.function(x)
        return Zone(x, mean + self.noise(x) * random.standard_normal(n_rows), mean)


def one(name: str, random: Random) -> Problem:
    """Make a problem of one input."""
    make, noise = ONE[name]
    curve = Curve(make(random), noise)
    train = curve.zone(DATA_1, N_ROWS_1, random)
    ranges = {"data": DATA_1, "gap": GAP_1, "beyond": BEYOND_1}
    return Problem(train.x, train.y, {zone: curve.zone(at, N_ZONE_ROWS, random) for zone, at in ranges.items()})


OUTLYING = (30.0, -25.0, 60.0)
"""Inputs of the rows that lie far from all others; their targets tell nothing."""


def outliers(name: str, random: Random) -> Problem:
    """Make a problem of one input and three more rows with outlying inputs."""
    kind, n_rows = name.split(", ")
    make, noise = ONE[kind]
    curve = Curve(make(random), noise)
    train = curve.zone(DATA_1, int(n_rows), random)
    x = np.concatenate([train.x, np.array(OUTLYING)[:, None]])
    y = np.concatenate([train.y, random.standard_normal(len(OUTLYING))])
    order = random.permutation(len(y))
    ranges = {"data": DATA_1, "gap": GAP_1, "beyond": BEYOND_1}
    return Problem(x[order], y[order], {zone: curve.zone(at, N_ZONE_ROWS, random) for zone, at in ranges.items()})


DEMO = Curve(
    lambda x: np.asarray(1.4 * np.sin(0.9 * x[:, 0]) + 0.8 * np.tanh(x[:, 0])),
    lambda x: np.asarray(0.06 + 0.25 * np.exp(-((x[:, 0] + 3.4) ** 2))),
)
"""The function and the noise of `softwood demo`."""
DEMO_DATA = ((-5.0, -1.5), (1.8, 3.4))
DEMO_EMPTY = ((-1.5, 1.8), (3.4, 5.0))


def demo(random: Random) -> Problem:
    """Draw the rows of `softwood demo` anew; the gap and the outside are one zone, as there."""
    train = DEMO.zone(DEMO_DATA, N_ROWS_1, random)
    zones = {"data": DEMO.zone(DEMO_DATA, 1000, random), "empty": DEMO.zone(DEMO_EMPTY, 1000, random)}
    return Problem(train.x, train.y, zones)


# --- several dimensions; the inputs of the data are uniform on [-1, 1]

N_ROWS = {3: 400, 8: 600}
NOISE = 0.2
MAX_BEYOND = 1.75
"""Largest absolute value of an input beyond the box."""


@dataclass(frozen=True)
class Truth:
    """A function of several inputs and the inputs that it depends on most."""

    function: Function
    relevant: NDArray[np.intp]


def gp(n_columns: int, random: Random) -> Truth:
    """Draw a function of a Gaussian process; in eight dimensions three inputs have no effect."""
    n_relevant = min(n_columns, 5)
    relevant = random.permutation(n_columns)[:n_relevant]
    lengths = np.full(n_columns, np.inf)
    lengths[relevant] = random.uniform(0.5, 1.5, n_relevant) * np.sqrt(n_relevant / 3)
    return Truth(fourier_draw(lengths, random), relevant[np.argsort(lengths[relevant])])


def additive(n_columns: int, random: Random) -> Truth:
    """Draw a sum of functions of single inputs, with weights that fall from input to input."""
    order = random.permutation(n_columns)
    weights = np.zeros(n_columns)
    weights[order] = 0.75 ** np.arange(n_columns)
    weights /= np.sqrt(np.sum(weights**2))
    parts = [fourier_draw(np.array([random.uniform(0.4, 1.2)]), random, 400) for _ in range(n_columns)]

    def function(x: Array) -> Array:
        return np.asarray(sum(weights[at] * part(x[:, [at]]) for at, part in enumerate(parts)))

    return Truth(function, order)


def friedman(n_columns: int, random: Random) -> Truth:
    """Return Friedman's function (two terms in three dimensions) of inputs in a random order and direction."""
    order, signs = random.permutation(n_columns), random.choice([-1.0, 1.0], n_columns)

    def raw(x: Array) -> Array:
        u = (signs * x[:, order] + 1) / 2
        value = 10 * np.sin(np.pi * u[:, 0] * u[:, 1]) + 20 * (u[:, 2] - 0.5) ** 2
        return np.asarray(value if n_columns < 5 else value + 10 * u[:, 3] + 5 * u[:, 4])

    box = raw(np.random.default_rng(0).uniform(-1, 1, (20_000, n_columns)))
    center, scale = box.mean(), box.std()
    return Truth(lambda x: np.asarray((raw(x) - center) / scale), order)


SEVERAL: dict[str, Callable[[int, Random], Truth]] = {"gp": gp, "additive": additive, "friedman": friedman}


def several(n_columns: int, name: str, random: Random) -> Problem:
    """Make a problem of several inputs, with a slab or a cylinder of two relevant inputs cut out of the data."""
    kind, hole = name.split(", ")
    truth = SEVERAL[kind](n_columns, random)
    chosen = truth.relevant[: 1 if hole == "slab" else 2]
    radius = 1 / 3 if hole == "slab" else 0.6

    def is_hole(x: Array) -> NDArray[np.bool_]:
        return np.asarray(np.linalg.norm(x[:, chosen], axis=1) < radius)

    def draw(n_rows: int, *, in_hole: bool) -> Array:
        x = random.uniform(-1, 1, (20 * n_rows, n_columns))
        return np.asarray(x[is_hole(x) == in_hole][:n_rows])

    def beyond(n_rows: int) -> Array:
        x = random.uniform(-1, 1, (n_rows, n_columns))
        order = np.argsort(random.uniform(size=x.shape), axis=1)[:, : 1 + n_columns // 3]
        far = random.choice([-1.0, 1.0], order.shape) * random.uniform(1.1, MAX_BEYOND, order.shape)
        np.put_along_axis(x, order, far, axis=1)
        return x

    def zone(x: Array) -> Zone:
        mean = truth.function(x)
        return Zone(x, mean + NOISE * random.standard_normal(len(x)), mean)

    train = zone(draw(N_ROWS[n_columns], in_hole=False))
    rows = {
        "data": draw(N_ZONE_ROWS, in_hole=False),
        "gap": draw(N_ZONE_ROWS, in_hole=True),
        "beyond": beyond(N_ZONE_ROWS),
    }
    return Problem(train.x, train.y, {name: zone(x) for name, x in rows.items()})


# --- public tables


@cache
def read(data: Path, table: str) -> tuple[Array, Array]:
    """Return features and target of a table such as `gal/boston`."""
    import pandas as pd

    frame = pd.read_parquet(data / f"{table}.parquet")
    return frame.drop(columns="target").to_numpy(float), frame["target"].to_numpy(float)


def gap_inputs(data: Path, table: str, n_inputs: int | None) -> list[int]:
    """Return the inputs that have a middle third, or `n_inputs` of them, evenly spaced."""
    x, _ = read(data, table)
    found = [at for at in range(x.shape[1]) if len(np.unique(x[:, at])) >= MIN_VALUES]
    if n_inputs is None or n_inputs >= len(found):
        return found
    return [found[round(at)] for at in np.linspace(0, len(found) - 1, n_inputs)]


def gap_split(data: Path, name: str, random: Random) -> Problem:
    """Hold out the middle third of the values of one input (Foong et al. 2019) and a tenth of the other rows."""
    table, column = name.rsplit(" ", 1)
    x, y = _subsample(*read(data, table), 3 * MAX_ROWS // 2, random)
    order = np.lexsort([random.uniform(size=len(y)), x[:, int(column)]])
    low, gap, high = np.array_split(order, 3)
    outer = random.permutation(np.concatenate([low, high]))
    n_test = max(len(outer) // 10, 1)
    inside, train, gap = outer[:n_test], outer[n_test:], random.permutation(gap)[:MAX_TEST_ROWS]
    return Problem(x[train], y[train], {"data": Zone(x[inside], y[inside]), "gap": Zone(x[gap], y[gap])})


def random_split(data: Path, table: str, random: Random) -> Problem:
    """Hold out a tenth of the rows."""
    x, y = read(data, table)
    order = random.permutation(len(y))
    n_test = len(y) // 10
    test, train = order[:n_test][:MAX_TEST_ROWS], order[n_test:][:MAX_ROWS]
    return Problem(x[train], y[train], {"data": Zone(x[test], y[test])})


def missing_cells(data: Path, table: str, random: Random) -> Problem:
    """Split at random; in a second zone each test row lacks one cell, of a column that is complete in training."""
    problem = random_split(data, table, random)
    zone = problem.zones["data"]
    columns = [at for at in range(problem.x.shape[1]) if len(np.unique(problem.x[:, at])) >= MIN_VALUES]
    x = zone.x.copy()
    x[np.arange(len(x)), random.choice(columns, len(x))] = np.nan
    return Problem(problem.x, problem.y, {"data": zone, "missing": Zone(x, zone.y)})


def _subsample(x: Array, y: Array, max_rows: int, random: Random) -> tuple[Array, Array]:
    rows = random.permutation(len(y))[:max_rows]
    return x[rows], y[rows]


# --- by name

HOLES = ("slab", "cylinder")
NAMES: dict[str, tuple[str, ...]] = {
    "one": tuple(ONE),
    "three": tuple(f"{kind}, {hole}" for kind in SEVERAL for hole in HOLES),
    "eight": tuple(f"{kind}, {hole}" for kind in SEVERAL for hole in HOLES),
    "demo": ("demo",),
    "outliers": tuple(f"{kind}, {n_rows}" for kind in ("gp 1", "varying noise", "kinks") for n_rows in (90, 160, 400)),
}
"""Names of the synthetic problems of each part."""
PARTS = ("one", "three", "eight", "demo", "gaps", "random", "outliers", "missing")
"""In this order, which decides the random numbers."""


def problem(data: Path, part: str, name: str, seed: int) -> Problem:
    """Make the problem of a part, a name and a seed."""
    random = np.random.default_rng([seed, PARTS.index(part), *name.encode()])
    makers: dict[str, Callable[[], Problem]] = {
        "one": lambda: one(name, random),
        "three": lambda: several(3, name, random),
        "eight": lambda: several(8, name, random),
        "demo": lambda: demo(random),
        "gaps": lambda: gap_split(data, name, random),
        "random": lambda: random_split(data, name, random),
        "outliers": lambda: outliers(name, random),
        "missing": lambda: missing_cells(data, name, random),
    }
    return makers[part]()
