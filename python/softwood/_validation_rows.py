"""The validation rows of a fit: `X_val` and `y_val`, or `eval_set` as in LightGBM and XGBoost."""

from __future__ import annotations

from typing import Any


def validation_rows(X_val: Any, y_val: Any, eval_set: Any) -> tuple[Any, Any] | None:
    """Return features and targets of the validation rows; None if there are none."""
    if eval_set is None:
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val belong together: give both or neither")
        return None if X_val is None else (X_val, y_val)
    if X_val is not None or y_val is not None:
        raise ValueError("eval_set and X_val, y_val are two ways to give validation rows: give one of them")
    return _only_pair(eval_set)


def _only_pair(eval_set: Any) -> tuple[Any, Any]:
    """Read `(X_val, y_val)` or `[(X_val, y_val)]`."""
    if not isinstance(eval_set, (list, tuple)):
        raise TypeError(f"eval_set is a {type(eval_set).__name__}: expected [(X_val, y_val)] or (X_val, y_val)")
    pairs = [eval_set] if _is_pair(eval_set) else eval_set
    if len(pairs) > 1 and all(_is_pair(pair) for pair in pairs):
        raise ValueError(
            f"eval_set has {len(pairs)} pairs: give one pair, [(X_val, y_val)]; "
            "early stopping and the choice of settings use one validation set"
        )
    if len(pairs) != 1 or not _is_pair(pairs[0]):
        raise ValueError("eval_set does not hold a pair of features and targets: expected [(X_val, y_val)]")
    X_val, y_val = pairs[0]
    if X_val is None or y_val is None:
        raise ValueError("eval_set has None in its pair: expected [(X_val, y_val)] with features and targets")
    return X_val, y_val


def _is_pair(value: Any) -> bool:
    """Return whether a value is a tuple `(X, y)`; a tuple of two tuples is a sequence of pairs."""
    return isinstance(value, tuple) and len(value) == 2 and not all(isinstance(part, tuple) for part in value)
