"""Tables of pandas, polars, pyarrow and NumPy as columns for the native module.

This module imports none of the table libraries; it recognises their tables by their attributes. Equal cells give equal
columns for every library, and for the command line that reads the same cells from a file:

- booleans are categorical;
- a category is identified by its text, and levels are sorted by text;
- dates are days since 1970-01-01, timestamps are seconds since then, times and durations are seconds.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softwood._arguments import ArrayTable, Column, Table

MISSING = np.uint32(0xFFFF_FFFF)
"""Code of a missing category."""

SECOND = np.timedelta64(1, "s")
TICKS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""Ticks per second."""


@dataclass(frozen=True)
class Frame:
    """The columns of a table, and whether the table has column names."""

    columns: list[Column]
    is_named: bool


def is_frame(X: Any) -> bool:
    """Return whether X is a table of pandas, polars or pyarrow."""
    return _is_pandas(X) or _is_polars(X) or _is_arrow(X)


def from_frame(X: Any) -> Frame:
    """Read a table of pandas, polars or pyarrow."""
    if _is_pandas(X):
        names, cells, read = list(X.columns), (X.iloc[:, i] for i in range(X.shape[1])), _pandas_column
    elif _is_polars(X):
        X = X.collect() if hasattr(X, "collect") else X
        names, cells, read = list(X.columns), iter(X.get_columns()), _polars_column
    else:
        names, cells, read = list(X.column_names), iter(X.columns), _arrow_column
    is_named = _are_texts(names)
    names = names if is_named else default_names(len(names))
    return Frame([read(name, column) for name, column in zip(names, cells, strict=True)], is_named)


def from_array(X: NDArray[Any]) -> Table:
    """Read a two-dimensional array; in arrays of objects or texts, a column that is not numeric is categorical."""
    names = default_names(X.shape[1])
    if X.dtype.kind not in "OUS":
        # the native module needs aligned cells: an unaligned array, such as a field of packed records, is copied
        return ArrayTable(names, np.require(X, np.float64, "A"))
    return [_object_column(name, X[:, i]) for i, name in enumerate(names)]


def renamed(table: Table, names: Sequence[str]) -> Table:
    """Return the table with other column names."""
    if isinstance(table, ArrayTable):
        return ArrayTable(list(names), table.values)
    return [column._replace(name=name) for name, column in zip(names, table, strict=True)]


def names_of(table: Table) -> list[str]:
    """Return the column names."""
    return table.names if isinstance(table, ArrayTable) else [column.name for column in table]


def first_values(table: Table) -> NDArray[Any]:
    """Return an array whose length is the number of rows."""
    return table.values if isinstance(table, ArrayTable) else table[0].values


def default_names(n: int) -> list[str]:
    """Return names for columns that have none."""
    return [f"x{i}" for i in range(n)]


def categories(name: str, codes: NDArray[Any], values: Iterable[Any]) -> Column:
    """Make a categorical column from codes into `values`; negative codes are missing cells.

    Values with equal texts become one level, unused values are dropped, and levels are sorted by text.
    """
    texts = [text(value) for value in values]
    codes = np.asarray(codes, dtype=np.int64)
    used = sorted({texts[code] for code in np.unique(codes[codes >= 0])})
    code_of = {level: code for code, level in enumerate(used)}
    new_codes = np.array([*(code_of.get(level, 0) for level in texts), MISSING], dtype=np.uint32)
    return Column(name, new_codes[np.where(codes < 0, len(texts), codes)], used)


def text(value: Any) -> str:
    """Return the text of a category or class, as the command line writes it: `3` for 3.0, `true` for True."""
    if isinstance(value, (float, np.floating)):
        return np.format_float_positional(value, trim="-")
    name = str(value)
    return name.strip().lower() if name.strip().lower() in {"true", "false"} else name


def label_type(labels: NDArray[Any]) -> str:
    """Return the type of class labels as the model file names it: "text", "number" or "boolean"."""
    if labels.dtype.kind in "biuf":
        return "boolean" if labels.dtype.kind == "b" else "number"
    if all(isinstance(label, (bool, np.bool_)) for label in labels):
        return "boolean"
    are_numbers = all(isinstance(label, numbers.Real) and not isinstance(label, bool) for label in labels)
    return "number" if are_numbers else "text"


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where an array of any type has None, NaN, NaT or pandas' NA."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=np.bool_)
    return np.fromiter((_is_missing(value) for value in values), dtype=np.bool_, count=len(values))


def _is_missing(value: Any) -> bool:
    # pandas' NA is neither equal nor unequal to itself: the comparison returns NA
    return value is None or type(value).__name__ == "NAType" or (value != value) is True  # noqa: PLR0124


def _is_pandas(X: Any) -> bool:
    return hasattr(X, "iloc") and hasattr(X, "columns")


def _is_polars(X: Any) -> bool:
    is_table = hasattr(X, "get_columns") or hasattr(X, "collect")
    return is_table and type(X).__module__.partition(".")[0] == "polars"


def _is_arrow(X: Any) -> bool:
    return hasattr(X, "column_names") and hasattr(X, "schema") and hasattr(X, "columns")


def _are_texts(names: list[Any]) -> bool:
    are_texts = [isinstance(name, str) for name in names]
    if any(are_texts) and not all(are_texts):
        kinds = sorted({type(name).__name__ for name in names})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{kinds} as feature name / column name types."
        )
    return bool(are_texts) and all(are_texts)


def _object_column(name: str, cells: NDArray[Any]) -> Column:
    """Read a column of numbers if every cell is a number, a categorical column otherwise."""
    missing = is_missing(cells)
    present = cells[~missing]
    if cells.dtype.kind == "O" and any(isinstance(value, (str, bool, np.bool_)) for value in present):
        return _factorized(name, cells, missing)
    try:
        numbers = np.full(cells.shape, np.nan)
        numbers[~missing] = present.astype(np.float64)
    except ValueError:
        return _factorized(name, cells, missing)
    return Column(name, numbers)


def _factorized(name: str, cells: NDArray[Any], missing: NDArray[np.bool_]) -> Column:
    levels, inverse = np.unique([text(value) for value in cells[~missing]], return_inverse=True)
    codes = np.full(cells.shape, -1, dtype=np.int64)
    codes[~missing] = inverse
    return categories(name, codes, levels)


def _pandas_column(name: str, cells: Any) -> Column:
    dtype = cells.dtype
    if hasattr(dtype, "categories"):
        return categories(name, cells.cat.codes.to_numpy(), dtype.categories)
    if dtype.kind in "iuf" and not hasattr(dtype, "pyarrow_dtype"):
        return Column(name, cells.to_numpy(dtype=np.float64, na_value=np.nan))
    if hasattr(dtype, "pyarrow_dtype"):
        return _arrow_column(name, cells.array.__arrow_array__())
    if dtype.kind in "mM":
        ticks = cells.to_numpy(dtype=f"{dtype.kind}8[ns]")
        return Column(name, ticks.astype("m8[ns]") / SECOND)
    if dtype.kind == "c":
        raise _unsupported(name, dtype)
    if dtype.kind == "O" and not hasattr(dtype, "storage"):
        return _object_column(name, cells.to_numpy(dtype=object))
    codes, levels = cells.factorize()
    return categories(name, codes, levels)


def _polars_column(name: str, cells: Any) -> Column:
    kind = cells.dtype.base_type().__name__
    if cells.dtype.is_numeric() or kind == "Null":
        return Column(name, cells.cast(float).fill_null(np.nan).to_numpy())
    if cells.dtype.is_temporal():
        ticks = {"Date": 1.0, "Time": TICKS["ns"]}.get(kind) or TICKS[cells.dtype.time_unit]
        return Column(name, cells.to_physical().cast(float).fill_null(np.nan).to_numpy() / ticks)
    if kind == "Object":
        return _object_column(name, np.array(cells.to_list(), dtype=object))
    if kind not in {"String", "Categorical", "Enum", "Boolean"}:
        raise _unsupported(name, cells.dtype)
    cells = cells.cast(str)
    codes = cells.rank("dense").cast(int).fill_null(0).to_numpy() - 1
    return categories(name, codes, cells.drop_nulls().unique().sort().to_list())


def _arrow_column(name: str, cells: Any) -> Column:
    kind = str(cells.type)
    if kind.startswith(("dictionary", "string", "large_string", "bool")):
        return _arrow_categories(name, cells)
    if kind == "null":
        return Column(name, np.full(len(cells), np.nan))
    if kind.startswith(("int", "uint", "float", "double", "halffloat", "decimal")):
        return Column(name, np.asarray(cells.cast("float64", safe=False), dtype=np.float64))
    if kind.startswith(("date", "time", "duration")):
        ticks = {"date32[day]": 1.0, "date64[ms]": 86_400_000.0}.get(kind) or TICKS[cells.type.unit]
        whole = cells.cast("int32" if cells.type.bit_width == 32 else "int64")
        return Column(name, np.asarray(whole.cast("float64", safe=False), dtype=np.float64) / ticks)
    raise _unsupported(name, kind)


def _arrow_categories(name: str, cells: Any) -> Column:
    if hasattr(cells, "unify_dictionaries"):
        cells = cells.unify_dictionaries().combine_chunks()
    encoded = cells.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    codes = np.asarray(encoded.indices.fill_null(-1), dtype=np.int64)
    codes = np.where(np.isin(codes, [code for code, value in enumerate(values) if value is None]), -1, codes)
    return categories(name, codes, values)


def _unsupported(name: str, dtype: Any) -> ValueError:
    return ValueError(f"column `{name}`: {dtype} is neither a number nor a category; convert it to numbers or texts")
