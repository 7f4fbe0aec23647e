"""What a process says of itself: processor time and peak memory."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def timed(act: Callable[[], T]) -> tuple[T, float]:
    """Give what `act` returns, and the processor seconds (user and system, all threads) it took."""
    before = _cpu_seconds()
    result = act()
    return result, _cpu_seconds() - before


def forget_peak() -> float:
    """Start the account of peak memory anew; return what is in use now, in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def peak() -> float:
    """Most memory in use since `forget_peak`, in bytes."""
    return _status("VmHWM")


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _status(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024.0 * float(line.split()[1])
    raise LookupError(name)
