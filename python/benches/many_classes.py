"""Tables with many classes: `python -m benches.many_classes FOLDER` writes a training and a test table for each.

*eight* has 12,000 rows, 24 categorical columns of 2 to 800 levels, five numeric columns and eight uneven classes.
*four* has 3,500 rows, three categorical columns, four numeric columns and four classes.
`docs/experiments/many-classes.md` has the results.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

EIGHT_LEVELS = (2, 2, 3, 3, 4, 5, 6, 8, 12, 15, 18, 20, 24, 30, 36, 45, 60, 80, 110, 150, 220, 340, 520, 800)
EIGHT_SHARES = (0.6, 0.2, 0.1, 0.05, 0.025, 0.013, 0.008, 0.004)
FOUR_LEVELS = (4, 12, 30)
FOUR_SHARES = (0.4, 0.3, 0.2, 0.1)


def table(seed: int, n_rows: int, levels: tuple[int, ...], n_numeric: int, shares: tuple[float, ...]) -> pd.DataFrame:
    """Draw rows whose class depends on some of the columns, on a cross of two and on three numeric columns."""
    rng = np.random.default_rng(seed)
    n_classes = len(shares)
    codes = [rng.integers(0, n, n_rows) for n in levels]
    numbers = rng.standard_normal((n_rows, n_numeric))
    logits: NDArray[np.float64] = np.tile(np.log(shares), (n_rows, 1))
    informative = np.linspace(0, len(levels) - 1, min(5, len(levels))).astype(int)
    for column in informative:
        logits += rng.normal(0.0, 0.6, (levels[column], n_classes))[codes[column]]
    first, second = informative[:2]
    cross = rng.normal(0.0, 0.8, (levels[first], levels[second], n_classes))
    logits += cross[codes[first], codes[second]]
    logits += np.sin(2 * numbers[:, :3]) @ rng.normal(0.0, 1.0, (3, n_classes))
    noise = rng.gumbel(size=logits.shape)
    frame = {f"c{at}": [f"v{code}" for code in cells] for at, cells in enumerate(codes)}
    frame |= {f"x{at}": numbers[:, at].tolist() for at in range(n_numeric)}
    return pd.DataFrame({**frame, "y": [f"k{k}" for k in np.argmax(logits + noise, axis=1)]})


def main() -> None:
    """Write both tables, the second half of the rows as test rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for name, n_rows, levels, n_numeric, shares in [
        ("eight", 12_000, EIGHT_LEVELS, 5, EIGHT_SHARES),
        ("four", 3_500, FOUR_LEVELS, 4, FOUR_SHARES),
    ]:
        rows = table(arguments.seed, 2 * n_rows, levels, n_numeric, shares)
        rows[:n_rows].to_csv(arguments.folder / f"{name}-train.csv", index=False)
        rows[n_rows:].to_csv(arguments.folder / f"{name}-test.csv", index=False)


if __name__ == "__main__":
    main()
