"""Processor time and peak memory of this process."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def timed(function: Callable[[], T]) -> tuple[T, float]:
    """Call a function; return its result and its processor seconds (user and system, all threads)."""
    before = _cpu_seconds()
    result = function()
    return result, _cpu_seconds() - before


def reset_peak_memory() -> float:
    """Reset the peak memory of the process; return the current memory in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak_memory() -> float:
    """Return the peak memory since `reset_peak_memory`, in bytes."""
    return _status("VmHWM")


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _status(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024.0 * float(line.split()[1])
    raise LookupError(name)
