"""Numbers from Python, with errors that name the argument."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from softwood import _dates, _frame


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn the errors of a conversion to floats into a `ValueError` that names the argument."""
    try:
        yield
    except OverflowError as error:
        raise ValueError(f"{name} has an integer beyond the range of 64-bit floats") from error
    except TypeError as error:
        raise ValueError(f"{name} has a cell that is not a number: {error}") from error
    except ValueError as error:
        if not str(error).startswith("could not convert"):
            raise
        raise ValueError(f"{name} has a cell that is not a number: {error}") from error


def number(value: Any, name: str) -> float:
    """Convert one number."""
    with naming(name):
        return float(value)


def array(values: Any, name: str) -> NDArray[np.float64]:
    """Convert an array of any shape; masked cells become NaN."""
    with naming(name):
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(values.astype(np.float64), np.nan)
        return np.asarray(values, dtype=np.float64)


def target(y: Any, name: str) -> NDArray[np.float64]:
    """Convert the target of a regression; dates and durations become seconds, as in a feature."""
    _frame.reject_mask(y, name)
    values = np.asarray(y) if hasattr(y, "__array__") else None
    if values is not None and values.dtype.kind in "mM":
        y = _dates.seconds(name, values)
    with naming(name):
        found: NDArray[np.float64] = check_array(
            y, ensure_2d=False, dtype=np.float64, input_name=name, ensure_min_samples=0
        )
    return found
