"""Tables of pandas, polars, pyarrow and NumPy as columns for the native module.

This module imports none of the table libraries; it recognises their tables by their attributes. Equal cells give equal
columns for every library, and for the command line that reads the same cells from a file:

- booleans are categorical;
- a category is identified by its text, and levels are sorted by text;
- dates and timestamps are seconds since 1970-01-01 00:00 UTC, times and durations are seconds.
"""

from __future__ import annotations

import decimal
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softwood import _dates
from softwood._arguments import ArrayTable, Column, Table
from softwood._warn import warn_user

TEMPORAL = ("date", "time", "duration")
"""How the names of Arrow's types of dates, timestamps, times and durations begin."""

MISSING = np.uint32(0xFFFF_FFFF)
"""Code of a missing category."""

EXACT_INTEGERS = 2.0**53
"""Size from which on 64-bit floats round integers."""

CELL_TYPES = (str, bytes, bool, np.bool_, numbers.Real, decimal.Decimal)
"""Types of the cells of an array of objects, besides dates and durations."""


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
    for name in names:
        if not is_encodable(name):
            raise ValueError(f"the name of column {name!r} cannot be encoded in UTF-8; rename the column")
    return Frame([read(name, column) for name, column in zip(names, cells, strict=True)], is_named)


def from_array(X: NDArray[Any]) -> Table:
    """Read a two-dimensional array; in arrays of objects or texts, a column that is not numeric is categorical."""
    names = default_names(X.shape[1])
    if X.dtype.kind in "mM":
        return [Column(name, _dates.seconds(name, X[:, i])) for i, name in enumerate(names)]
    if X.dtype.kind not in "OUS":
        # the native module needs aligned cells: an unaligned array, such as a field of packed records, is copied
        table = ArrayTable(names, np.require(X, np.float64, "A"))
        if X.dtype.kind in "iu" and X.dtype.itemsize == 8:
            for name, cells in zip(names, table.values.T, strict=True):
                warn_of_rounding(name, cells)
        return table
    return [_object_column(name, X[:, i]) for i, name in enumerate(names)]


def plain_array(X: Any) -> Any:
    """Return an array that scikit-learn checks: masked cells are missing, texts of any length are objects.

    What is not an array is unchanged.
    """
    if isinstance(X, np.ndarray) and X.dtype.kind == "T":
        return X.astype(object)
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.getmaskarray(X).any():
        return X.data
    if X.dtype.kind in "iu" and X.ndim == 2:
        from_array(X.filled(0))  # warns of integers that are rounded
    if X.dtype.kind in "biuf":
        return np.ma.filled(X.astype(np.float64), np.nan)
    cells: NDArray[Any] = X.data.copy() if X.dtype.kind in "mM" else X.data.astype(object)
    cells[np.ma.getmaskarray(X)] = "NaT" if X.dtype.kind in "mM" else None
    return cells


def reject_mask(values: Any, name: str) -> None:
    """Raise an error if an array has masked cells; `name` names the argument."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        row = int(np.argwhere(np.ma.getmaskarray(values))[0][0])
        raise ValueError(f"{name}, row {row + 1}: the cell is masked; drop the row or fill the cell")


def warn_of_rounding(name: str, integers: NDArray[np.float64]) -> None:
    """Warn if a column of integers, which are floats now, has numbers that floats round."""
    largest = np.fmax.reduce(integers, initial=0.0)
    smallest = np.fmin.reduce(integers, initial=0.0)
    if max(largest, -smallest) >= EXACT_INTEGERS:
        warn_user(
            f"column `{name}` has integers of 2**53 and more, which 64-bit floats round; "
            "convert it to texts if they are identifiers"
        )


def is_encodable(value: str) -> bool:
    """Return whether a text can be encoded in UTF-8: it has no lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def renamed(table: Table, names: Sequence[str]) -> Table:
    """Return the table with other column names."""
    if isinstance(table, ArrayTable):
        return ArrayTable(list(names), table.values)
    return [column._replace(name=name) for name, column in zip(names, table, strict=True)]


def n_rows(table: Table) -> int:
    """Return the number of rows of a table."""
    return len(first_values(table))


def rows(table: Table, part: slice) -> Table:
    """Return a part of the rows, with the types and levels of the whole table."""
    if isinstance(table, ArrayTable):
        return ArrayTable(table.names, table.values[part])
    return [column._replace(values=column.values[part]) for column in table]


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
    if not is_encodable("".join(used)):
        level = next(level for level in used if not is_encodable(level))
        raise ValueError(f"column `{name}` has the text {level!r}, which UTF-8 cannot encode; replace it")
    code_of = {level: code for code, level in enumerate(used)}
    new_codes = np.array([*(code_of.get(level, 0) for level in texts), MISSING], dtype=np.uint32)
    return Column(name, new_codes[np.where(codes < 0, len(texts), codes)], used)


def text(value: Any) -> str:
    """Return the text of a category, as the command line writes it: `3` for 3.0, `true` for True."""
    if isinstance(value, (float, np.floating)):
        return np.format_float_positional(value, trim="-")
    name = str(value)
    return name.strip().lower() if name.strip().lower() in {"true", "false"} else name


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where an array of any type has None, NaN, NaT or pandas' NA."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind in "mM":
        return np.asarray(np.isnat(values))
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
    """Read a column of numbers if every cell is a number, of dates if every cell is one, else a categorical column."""
    missing = is_missing(cells)
    present = cells[~missing]
    types = set(map(type, present)) if cells.dtype.kind == "O" else set()
    if any(issubclass(cell_type, _dates.TYPES) for cell_type in types):
        return Column(name, _dates.object_seconds(name, cells, missing))
    for cell_type in types:
        if not issubclass(cell_type, CELL_TYPES):
            raise _unsupported_cell(name, cells, cell_type)
    if any(issubclass(cell_type, (str, bool, np.bool_)) for cell_type in types):
        return _factorized(name, cells, missing)
    try:
        values = np.full(cells.shape, np.nan)
        values[~missing] = present.astype(np.float64)
    except ValueError:
        return _factorized(name, cells, missing)
    except OverflowError as error:
        raise ValueError(f"column `{name}` has an integer beyond the range of 64-bit floats") from error
    if any(issubclass(cell_type, numbers.Integral) for cell_type in types):
        warn_of_rounding(name, values)
    return Column(name, values)


def _unsupported_cell(name: str, cells: NDArray[Any], cell_type: type) -> TypeError:
    row = next(row for row, cell in enumerate(cells) if type(cell) is cell_type)
    return TypeError(
        f"column `{name}`, row {row + 1}: a cell of type {cell_type.__name__}; "
        "the argument must be a string, a number or a date: convert the column"
    )


def _factorized(name: str, cells: NDArray[Any], missing: NDArray[np.bool_]) -> Column:
    levels, inverse = np.unique([text(value) for value in cells[~missing]], return_inverse=True)
    codes = np.full(cells.shape, -1, dtype=np.int64)
    codes[~missing] = inverse
    return categories(name, codes, levels)


def _pandas_column(name: str, cells: Any) -> Column:
    dtype = cells.dtype
    if hasattr(dtype, "categories"):
        codes = cells.cat.codes.to_numpy()
        if getattr(dtype.categories.dtype, "kind", "") in "mM":
            moments = _pandas_column(name, dtype.categories.to_series()).values
            return Column(name, np.append(moments, np.nan)[codes])
        return categories(name, codes, dtype.categories)
    if dtype.kind in "iuf" and not hasattr(dtype, "pyarrow_dtype"):
        return _numeric(name, cells.to_numpy(dtype=np.float64, na_value=np.nan), are_integers=dtype.kind in "iu")
    if hasattr(dtype, "pyarrow_dtype"):
        return _arrow_column(name, cells.array.__arrow_array__())
    if dtype.kind in "mM":
        # in the unit of the column, in UTC: nanoseconds wrap around outside of the years 1677 to 2262
        unit = dtype.unit if hasattr(dtype, "unit") else np.datetime_data(dtype)[0]
        return Column(name, _dates.seconds(name, cells.to_numpy(dtype=f"{dtype.kind}8[{unit}]")))
    if dtype.kind == "c":
        raise _unsupported(name, dtype)
    if dtype.kind == "O" and not hasattr(dtype, "storage"):
        return _object_column(name, cells.to_numpy(dtype=object))
    codes, levels = cells.factorize()
    return categories(name, codes, levels)


def _polars_column(name: str, cells: Any) -> Column:
    kind = cells.dtype.base_type().__name__
    if cells.dtype.is_numeric() or kind == "Null":
        values = cells.cast(float).fill_null(np.nan).to_numpy()
        return _numeric(name, values, are_integers=cells.dtype.is_integer())
    if cells.dtype.is_temporal():
        ticks = cells.to_physical().cast(int).fill_null(0).to_numpy()
        unit = {"Date": "D", "Time": "ns"}.get(kind) or cells.dtype.time_unit
        return Column(name, _tick_seconds(ticks, unit, cells.is_null().to_numpy()))
    if kind == "Object":
        return _object_column(name, np.array(cells.to_list(), dtype=object))
    if kind not in {"String", "Categorical", "Enum", "Boolean"}:
        raise _unsupported(name, cells.dtype)
    cells = cells.cast(str)
    codes = cells.rank("dense").cast(int).fill_null(0).to_numpy() - 1
    return categories(name, codes, cells.drop_nulls().unique().sort().to_list())


def _arrow_column(name: str, cells: Any) -> Column:
    kind = str(cells.type)
    if kind.startswith("dictionary") and str(cells.type.value_type).startswith(TEMPORAL):
        return _arrow_column(name, cells.cast(cells.type.value_type))
    if kind.startswith(("dictionary", "string", "large_string", "bool")):
        return _arrow_categories(name, cells)
    if kind == "null":
        return Column(name, np.full(len(cells), np.nan))
    if kind.startswith(("int", "uint", "float", "double", "halffloat", "decimal")):
        values = np.asarray(cells.cast("float64", safe=False), dtype=np.float64)
        return _numeric(name, values, are_integers=kind.startswith(("int", "uint")))
    if kind.startswith(TEMPORAL):
        whole = cells.cast("int32" if cells.type.bit_width == 32 else "int64")
        ticks = np.asarray(whole.cast("int64").fill_null(0), dtype=np.int64)
        unit = "D" if kind.startswith("date32") else "ms" if kind.startswith("date64") else cells.type.unit
        return Column(name, _tick_seconds(ticks, unit, np.asarray(cells.is_null())))
    raise _unsupported(name, kind)


def _tick_seconds(ticks: NDArray[np.int64], unit: str, missing: NDArray[np.bool_]) -> NDArray[np.float64]:
    found = ticks.astype(np.float64) * _dates.SECONDS["D"] if unit == "D" else _dates.tick_seconds(ticks, unit)
    found[missing] = np.nan
    return found


def _numeric(name: str, values: NDArray[np.float64], *, are_integers: bool) -> Column:
    if are_integers:
        warn_of_rounding(name, values)
    return Column(name, values)


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
