"""Measurements in the environments of several libraries: one worker process for each, one thread, one job at a time.

A job is a dictionary of names and numbers. A worker reads one job per line of standard input and answers with one
line: the job and what was measured. A job that has a line in the file of results is not repeated, so that a run can be
interrupted and resumed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benches import report

Job = dict[str, Any]
Line = dict[str, Any]


def environment(**further: str) -> dict[str, str]:
    """Return the environment variables of a process that measures on one thread."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
    return {**os.environ, **dict.fromkeys(names, "1"), "PYTHONPATH": str(report.ROOT / "python"), **further}


def is_result(line: Line, job: Job) -> bool:
    """Tell whether a line is the result of a job."""
    return all(line.get(name) == value for name, value in job.items())


class Worker:
    """A process that measures jobs."""

    def __init__(self, python: Path, module: str, data: Path) -> None:
        variables = environment(SOFTWOOD_DATA=str(data))
        self.process = subprocess.Popen(
            [str(python), "-m", module], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def measure(self, job: Job) -> Line:
        """Return the result of a job."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the worker ended at {job}")
        line: Line = json.loads(answer)
        return line

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def run(jobs: Iterable[Job], lines: Path, module: str, python_of: Callable[[Job], Path], data: Path) -> None:
    """Measure the jobs that have no line yet, in their order."""
    known = report.read_lines(lines)
    workers: dict[Path, Worker] = {}
    with ExitStack() as stack:
        for job in jobs:
            if any(is_result(line, job) for line in known):
                continue
            python = python_of(job)
            if python not in workers:
                workers[python] = Worker(python, module, data)
                stack.callback(workers[python].close)
            found = workers[python].measure(job)
            report.add_line(lines, found)
            print(f"{' '.join(map(str, job.values()))}: {found['seconds']:.1f} s", file=sys.stderr)


def imported(library: str) -> str:
    """Import a library, so that its import is not timed; return its name and version."""
    import_module(library)
    return f"{library} {version(library)}"


def serve(measure: Callable[[Job], Line]) -> None:
    """Answer the jobs of standard input; what libraries print goes to standard error."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for text in sys.stdin:
            job = json.loads(text)
            answers.write(json.dumps({**job, **measure(job)}) + "\n")
            answers.flush()
