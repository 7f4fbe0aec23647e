"""Dates, timestamps and durations as numbers: seconds since 1970-01-01 00:00 UTC, or seconds; NaN where missing."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

SECONDS = {"W": 604_800.0, "D": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
"""Seconds per tick of a unit."""

TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
"""Ticks per second of a unit."""

NANOS = TICKS["ns"]

MAX_EXACT_MICROS = 2**53 // 10**6
"""Seconds up to which microseconds since 1970 are exact floats, as in the readers of files."""

MAX_MONTHS = 10**15
"""Largest number of months or years since 1970 whose days fit into 64 bits."""

MOMENTS = (datetime.date, np.datetime64)
DURATIONS = (datetime.timedelta, np.timedelta64)
TYPES = (*MOMENTS, *DURATIONS, datetime.time)


def seconds(name: str, values: NDArray[Any]) -> NDArray[np.float64]:
    """Convert an array of `datetime64` or `timedelta64` of any unit; `name` names the column in errors."""
    unit, count = np.datetime_data(values.dtype)
    if unit in {"Y", "M"}:
        values = _days(name, values)
        unit, count = "D", 1
    missing = np.isnat(values)
    if unit == "generic" and not missing.all():
        raise ValueError(f"column `{name}`: durations without a unit; convert them to a unit such as timedelta64[s]")
    ticks = values.astype(np.int64)
    if unit in SECONDS:
        # as floats: a wider range loses digits, not its sign
        found = ticks.astype(np.float64) * count * SECONDS[unit]
    elif count == 1:
        found = tick_seconds(ticks, unit)
    else:
        found = ticks.astype(np.float64) * count / TICKS.get(unit, 1)
    found[missing] = np.nan
    return found


def tick_seconds(ticks: NDArray[np.int64], unit: str) -> NDArray[np.float64]:
    """Convert whole ticks of a unit up to seconds; an instant has the same bits in every unit and file format."""
    per_second = TICKS.get(unit, 1)
    whole, rest = np.divmod(ticks, per_second)
    nanos = rest * (NANOS // per_second) if per_second <= NANOS else rest // (per_second // NANOS)
    is_exact = (nanos % 1000 == 0) & (np.abs(whole) < MAX_EXACT_MICROS) & (per_second <= NANOS)
    micros = np.where(is_exact, whole, 0) * 10**6 + nanos // 1000
    found: NDArray[np.float64] = np.where(is_exact, micros / 1e6, whole + rest / per_second)
    # ticks that a float holds: one rounding
    return np.where(np.abs(ticks) < 2**53, ticks / per_second, found)


def _days(name: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind == "m":
        raise ValueError(f"column `{name}`: months and years have no fixed length; convert the durations to days")
    months = values[~np.isnat(values)].astype(np.int64).astype(np.float64)
    if np.abs(months).max(initial=0.0) > MAX_MONTHS:
        raise ValueError(f"column `{name}`: dates beyond the range of 64-bit days")
    return values.astype("M8[D]")


def object_seconds(name: str, cells: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Convert cells that are dates, timestamps, durations or times, all of them of one of these kinds.

    A date is its midnight, a time the seconds since midnight; without a time zone they are UTC.
    """
    present = cells[~missing]
    for types in (MOMENTS, DURATIONS, (datetime.time,)):
        if all(isinstance(cell, types) for cell in present):
            found = np.full(cells.shape, np.nan)
            found[~missing] = [_cell_seconds(name, cell) for cell in present]
            return found
    kinds = sorted({type(cell).__name__ for cell in present})
    raise TypeError(f"column `{name}` mixes cells of type {', '.join(kinds)}; convert them to one type")


def _cell_seconds(name: str, cell: Any) -> float:
    if isinstance(cell, datetime.time):
        return 3600.0 * cell.hour + 60.0 * cell.minute + cell.second + cell.microsecond / 1e6
    if hasattr(cell, "to_numpy"):  # of pandas, in UTC
        cell = cell.to_numpy()
    elif isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
        cell = cell.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    kind = "m8" if isinstance(cell, DURATIONS) else "M8"
    return float(seconds(name, np.array([cell], dtype=kind))[0])
