"""Public tables with their standard splits, and out-of-domain rows.

The tables are in the folder `SOFTWOOD_DATA`. A table is a Parquet file whose last column is `target`; texts are
categories. A file of splits has columns `perm_0`, `perm_1`, ... (permutations of the rows, training rows first) or one
column `test`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benches.report import data_folder

N_TRAIN = {
    "boston": 455,
    "concrete": 927,
    "energy": 691,
    "kin8nm": 7373,
    "naval": 10741,
    "power": 8611,
    "protein": 41157,
    "wine": 1439,
    "yacht": 277,
    "amazon": 26215,
    "internet": 8086,
    "kick": 58388,
}
"""Number of training rows of a permutation."""
REGRESSION = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")
CLASSES = ("adult", "amazon", "internet", "kick")


@dataclass(frozen=True)
class Split:
    """Training rows, test rows and out-of-domain rows."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    X_ood: Any

    @property
    def categories(self) -> list[str]:
        """Return the names of the categorical columns."""
        return _categories(self.X)


def _read(name: str, folder: str = "") -> Any:
    return pd.read_parquet(data_folder() / ("gal" if name in REGRESSION else "class") / folder / f"{name}.parquet")


def n_splits(name: str) -> int:
    """Return the number of standard splits."""
    return len(_read(name, "splits").columns)


def split(name: str, number: int) -> Split:
    """Read one split of a table."""
    rows, layout = _read(name), _read(name, "splits")
    if "test" in layout.columns:
        is_test = layout["test"].to_numpy()
        train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    else:
        train, test = np.split(layout[f"perm_{number}"].to_numpy(), [N_TRAIN[name]])
    X, y = rows.drop(columns="target"), rows["target"].to_numpy()
    if name in REGRESSION:
        # moments of the whole table, not of the training rows, as in the published figures
        ood = _ood_rows(X, round(0.1 * len(X)))
    else:
        inside = X.iloc[test]
        ood = _ood_rows(inside, len(inside))
    return Split(X.iloc[train], y[train], X.iloc[test], y[test], ood)


def _ood_rows(inside: Any, n_rows: int) -> Any:
    """Return out-of-domain rows: cells of the Year table with the mean and the spread of `inside`; random categories.

    There are fewer than `n_rows` rows if the Year table has fewer.
    """
    year = pd.read_parquet(data_folder() / "ood" / "year_head.parquet")
    year = year[["target", *(name for name in year.columns if name != "target")]].head(n_rows).to_numpy(np.float64)
    rng = np.random.default_rng(0)
    columns = {}
    for position, name in enumerate(inside.columns):
        own = inside[name]
        if name in _categories(inside):
            columns[name] = rng.choice(np.sort(own.dropna().unique().astype(str)), len(year))
            continue
        numbers = own.to_numpy(np.float64)
        cells = year[:, position]
        standard = (cells - cells.mean()) / cells.std()
        columns[name] = standard * np.nanstd(numbers) + np.nanmean(numbers)
    return pd.DataFrame(columns)


def _categories(rows: Any) -> list[str]:
    return [name for name in rows.columns if not pd.api.types.is_numeric_dtype(rows[name])]
