"""Callbacks of a fit: calls them with every event, prints progress, and writes checkpoints."""

from __future__ import annotations

import numbers
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softwood._base import Estimator
    from softwood._native import Event, Model

    Callback = Callable[[Event], bool | None]

SECONDS_BETWEEN_LINES = 5.0
"""Time between two lines of progress within a stage."""


class Dispatcher:
    """Calls all callbacks of a fit with every event, one at a time. The native module calls it from any thread."""

    def __init__(self, callbacks: list[Callback], to_estimator: Callable[[Model], Estimator]) -> None:
        self._callbacks = callbacks
        self._asked = [callback for callback in callbacks if hasattr(callback, "wants_snapshot")]
        # a callback that predicts may run other work of the fit on its own thread, which brings further events
        self._lock = threading.RLock()
        self.to_estimator = to_estimator
        self.is_stopped = False

    @property
    def with_snapshots(self) -> bool:
        """Whether some callback may want snapshots."""
        return bool(self._asked)

    def __call__(self, event: Event) -> bool:
        """Call all callbacks; return whether one of them stopped the fit, now or before."""
        with self._lock:
            if not self.is_stopped:
                answers = [bool(callback(event)) for callback in self._callbacks]
                self.is_stopped = any(answers)
            return self.is_stopped

    def wants_snapshot(self, event: Event) -> bool:
        """Return whether some callback wants a snapshot with this event."""
        with self._lock:
            return not self.is_stopped and any(callback.wants_snapshot(event) for callback in self._asked)


def all_callbacks(callbacks: Any, verbose: Any) -> list[Callback]:
    """Return the callbacks that a user gave and the one that prints progress."""
    printer = _printer(verbose)
    return ([] if printer is None else [printer]) + _checked(callbacks)


def _checked(callbacks: Any) -> list[Callback]:
    if callbacks is None:
        return []
    if not isinstance(callbacks, Iterable):
        raise TypeError(f"callbacks is a {type(callbacks).__name__}: expected a list of callables")
    checked: list[Callback] = list(callbacks)
    for at, callback in enumerate(checked):
        if not callable(callback):
            raise TypeError(f"callbacks[{at}] is a {type(callback).__name__}: expected a callable that takes an Event")
    return checked


class Progress:
    """Prints a line for the first event of every stage and then every few seconds, or for every event."""

    def __init__(self, *, with_all_events: bool) -> None:
        self._with_all_events = with_all_events
        self._stage: str | None = None
        self._next_time = 0.0

    def __call__(self, event: Event) -> None:
        """Print the event, if its turn has come."""
        now = time.monotonic()
        if self._with_all_events or event.stage != self._stage or now >= self._next_time:
            self._stage, self._next_time = event.stage, now + SECONDS_BETWEEN_LINES
            print(_line(event), flush=True)


def _printer(verbose: Any) -> Progress | None:
    if not isinstance(verbose, numbers.Integral) or int(verbose) < 0:
        raise ValueError(f"verbose = {verbose!r}: expected 0 (silent), 1 (some events) or 2 (every event)")
    return Progress(with_all_events=int(verbose) > 1) if verbose else None


def _line(event: Event) -> str:
    names = ("trial", "member", "tree", "epoch", "elbo", "validation_score")
    values = [(name.replace("_", " "), getattr(event, name)) for name in names]
    parts = [f"{event.stage} {event.done} of {event.total}"]
    parts += [f"{name} {value:.6g}" for name, value in values if value is not None]
    return ", ".join(parts)


class Checkpoint:
    """A callback that writes the model to a file while it is fitted.

    Each file replaces the one before; `softwood.load` reads it. An ensemble gives the member that is being trained.
    There is nothing to write while the fit selects its settings, and for families that build a model in one step.

    Parameters
    ----------
    path : str or path
        The file.
    every : float, default=60
        Seconds between two files; 0: one for every event.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> from softwood import Checkpoint, SGBRegressor, load
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> path = os.path.join(tempfile.mkdtemp(), "checkpoint.softwood")
    >>> model = SGBRegressor(n_estimators=20, n_members=1, max_depth=2, learning_rate=0.1, random_state=0)
    >>> model = model.fit(X, np.sin(6 * X[:, 0]), callbacks=[Checkpoint(path, every=0)])
    >>> load(path).predict(X).shape
    (200,)
    """

    def __init__(self, path: str | os.PathLike[str], *, every: float = 60.0) -> None:
        if not float(every) >= 0:
            raise ValueError(f"every = {every!r}: expected a number of seconds, at least 0")
        self.path = path
        self.every = float(every)
        self._next_time = time.monotonic() + self.every

    def wants_snapshot(self, event: Event) -> bool:
        """Return whether it is time for the next file."""
        return time.monotonic() >= self._next_time

    def __call__(self, event: Event) -> None:
        """Write the snapshot of the event, if it is time for the next file."""
        if event.snapshot is not None and self.wants_snapshot(event):
            event.snapshot.save(self.path)
            self._next_time = time.monotonic() + self.every
