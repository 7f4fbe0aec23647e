"""Class labels: which ones a classifier accepts, their names in a model file, and the way back.

A label is what it was after a model file: texts, integers, floats and booleans keep their type. Labels of other types
are rejected.
"""

from __future__ import annotations

import enum
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, column_or_1d

from softwood import _frame

Labels = NDArray[Any]

TEXT, BOOLEAN, INTEGER, FLOAT = "a text", "a boolean", "an integer", "a float"
"""Kinds of labels."""

KINDS: dict[str, tuple[type, ...]] = {
    TEXT: (str,),
    BOOLEAN: (bool, np.bool_),
    INTEGER: (numbers.Integral,),
    FLOAT: (float, np.floating),
}
"""Types of the labels of a kind; the first kind that fits counts."""

EXPECTED = "expected texts, integers, floats or booleans; convert the labels to texts"

DTYPES = frozenset(
    [
        "bool",
        "str",
        "object",
        "float16",
        "float32",
        "float64",
        *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)),
    ]
)
"""Types of class labels that a model file may name."""


def from_target(y: Any, name: str) -> Labels:
    """Read a target of classes as an array of booleans, integers, floats or texts.

    Texts are an array of objects if NumPy's texts would change them or if a label is missing (None).
    """
    _frame.reject_mask(y, name)
    if isinstance(y, (list, tuple)):
        y = _from_list(y)
    elif hasattr(y, "iloc"):
        y = np.asarray(y)  # scikit-learn would turn integers and booleans of pandas into floats
    if isinstance(y, np.ndarray) and y.dtype.kind == "T":
        y = y.astype(object)
    labels: Labels = check_array(y, ensure_2d=False, dtype=None, input_name=name, ensure_min_samples=0)
    labels = np.asarray(column_or_1d(labels, warn=True))
    kind = labels.dtype.kind
    if kind == "O":
        return _from_objects(labels, name)
    if kind not in "biufU":
        raise ValueError(f"{name} has labels of type {labels.dtype}: {EXPECTED}")
    is_wide = labels.dtype.itemsize > 8 and kind == "f"
    return labels.astype(np.float64 if is_wide else labels.dtype.newbyteorder("="), copy=False)


def text(label: Any) -> str:
    """Return the name of a class in a model file: `3` for 3 and 3.0, `true` for True, a text unchanged."""
    if isinstance(label, (bool, np.bool_)):
        return "true" if label else "false"
    return np.format_float_positional(label, trim="-") if isinstance(label, (float, np.floating)) else str(label)


def names(classes: Labels, target: str) -> list[str]:
    """Return the names of classes; `target` names the argument in errors."""
    found = [text(label) for label in classes]
    for name in found:
        if not _frame.is_encodable(name):
            raise ValueError(f"{target} has the class {name!r}, which UTF-8 cannot encode; replace the text")
    return found


def names_as_in(known: Labels, labels: Labels, target: str) -> list[str]:
    """Return the names of labels as a fitted model knows them: True and the texts `true`, `TRUE` match each other."""
    known_names = {text(label) for label in known}

    def name_of(name: str) -> str:
        word = name.strip().lower()
        if name in known_names or word not in {"true", "false"}:
            return name
        same = [found for found in known_names if found.strip().lower() == word]
        return same[0] if len(same) == 1 else name

    return [name_of(name) for name in names(labels, target)]


def kind_of(classes: Labels) -> str:
    """Return the type of class labels as the model file names it: "text", "number" or "boolean"."""
    return {"b": "boolean", "i": "number", "u": "number", "f": "number"}.get(classes.dtype.kind, "text")


def dtype_of(classes: Labels) -> str:
    """Return the NumPy type of class labels as the model file names it."""
    return "str" if classes.dtype.kind == "U" else classes.dtype.name


def from_file(class_names: list[str], kind: str, dtype: str | None) -> Labels:
    """Return the class labels of a model file."""
    try:
        return _of_dtype(class_names, dtype) if dtype in DTYPES else _of_kind(class_names, kind)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"not a readable model: its classes are not of the type {dtype or kind}: {error}") from error


def _of_dtype(class_names: list[str], dtype: str | None) -> Labels:
    if dtype == "bool":
        return _booleans(class_names)
    if dtype in {"str", "object"}:
        return np.array(class_names, dtype=dtype)
    number = float if str(dtype).startswith("float") else int
    return np.array([number(name) for name in class_names], dtype=dtype)


def _of_kind(class_names: list[str], kind: str) -> Labels:
    """Return class labels of a file that stores no NumPy type: integers if all of them are."""
    if kind == "boolean":
        return _booleans(class_names)
    if kind == "text":
        return _texts(class_names)
    try:
        return _integers([int(name) for name in class_names])
    except ValueError:
        return np.array([float(name) for name in class_names])


def _booleans(class_names: list[str]) -> Labels:
    return np.array([name == "true" for name in class_names])


def _texts(texts: list[str]) -> Labels:
    """Return an array of texts; NumPy's texts cannot end with a zero character, so that such texts are objects."""
    return np.array(texts, dtype=object if any(value.endswith("\0") for value in texts) else str)


def _integers(values: list[int]) -> Labels:
    """Return 64-bit integers, unsigned where they have to be, or objects where no such type holds all."""
    low, high = min(values, default=0), max(values, default=0)
    if low >= -(2**63) and high < 2**63:
        return np.array(values, dtype=np.int64)
    return np.array(values, dtype=np.uint64 if low >= 0 and high < 2**64 else object)


def _from_list(y: list[Any] | tuple[Any, ...]) -> Any:
    """Turn a list of scalars into an array where NumPy would convert labels to texts or round them."""
    kinds = {_kind(value_type) for value_type in set(map(type, y))}
    if kinds == {TEXT}:
        return _texts(list(y))
    are_nested = all(isinstance(value, (list, tuple, np.ndarray)) for value in y)
    are_kept = are_nested or kinds in ({FLOAT}, {BOOLEAN})
    are_kept = are_kept or (kinds == {INTEGER} and np.asarray(y).dtype.kind in "iu")
    return y if are_kept else np.fromiter(y, dtype=object, count=len(y))


def _from_objects(labels: Labels, name: str) -> Labels:
    """Convert an array of objects to the plain type of its labels; texts stay objects, missing labels are None."""
    missing = _frame.is_missing(labels)
    present = labels[~missing]
    kinds = {_kind(value_type) for value_type in set(map(type, present))}
    if None in kinds:
        row = next(row for row, label in enumerate(labels) if not missing[row] and _kind(type(label)) is None)
        raise ValueError(
            f"{name}, row {row + 1}: the label {_short(labels[row])} is a {type(labels[row]).__name__}: {EXPECTED}"
        )
    if len(kinds) > 1 and kinds != {INTEGER, FLOAT}:
        raise ValueError(f"{name} mixes labels of several types ({', '.join(sorted(map(str, kinds)))}): {EXPECTED}")
    if missing.any() or not kinds or kinds == {TEXT}:
        labels = labels.copy()
        labels[missing] = None
        return labels
    if kinds == {BOOLEAN}:
        return labels.astype(np.bool_)
    if kinds != {INTEGER}:
        return labels.astype(np.float64)
    integers = _integers([int(label) for label in labels])
    if integers.dtype.kind == "O":
        raise ValueError(f"{name} has integers beyond 64 bits as labels; convert them to texts")
    return integers


def _kind(label_type: type) -> str | None:
    """Return the kind of the labels of a type; None if they cannot be labels."""
    if issubclass(label_type, (enum.Enum, np.timedelta64)):
        return None
    return next((kind for kind, types in KINDS.items() if issubclass(label_type, types)), None)


def _short(label: Any) -> str:
    shown = repr(label)
    return shown if len(shown) <= 40 else shown[:40] + "..."
