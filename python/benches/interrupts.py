"""How fast a fit obeys Ctrl-C: seconds from the signal to the `KeyboardInterrupt`, for each regressor and three tables.

    python -m benches.interrupts [NAME ...]

prints the table of docs/experiments/robustness.md. Each cell is the longest of three signals, sent after 0.3, 1.5 and 4
seconds; a fit that ends before the signal is left out.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time

from benches import report

SHAPES = ((300_000, 10), (20, 20_000), (2000, 300))
WAITS = (0.3, 1.5, 4.0)
FIT = """
import sys, warnings
import numpy as np, softwood
warnings.simplefilter("ignore")
name, n_rows, n_columns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)
X = rng.normal(size=(n_rows, n_columns))
y = X[:, 0] + np.sin(3 * X[:, 1]) + 0.1 * rng.normal(size=n_rows)
print("ready", flush=True)
try:
    getattr(softwood, name)(n_jobs=1).fit(X, y)
    print("finished", flush=True)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def seconds_to_stop(name: str, shape: tuple[int, int], wait: float) -> float | None:
    """Interrupt one fit; none if it ended before the signal."""
    command = [sys.executable, "-c", FIT, name, *(str(size) for size in shape)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(wait)
        start = time.perf_counter()
        process.send_signal(signal.SIGINT)
        answer = process.stdout.readline().strip()
        return time.perf_counter() - start if answer == "stopped" else None


def main() -> None:
    """Measure and print the table."""
    import softwood

    names = sys.argv[1:] or sorted(name for name in softwood.__all__ if name.endswith("Regressor"))
    rows = []
    for name in names:
        row = [f"`{name}`"]
        for shape in SHAPES:
            times = [seconds for wait in WAITS if (seconds := seconds_to_stop(name, shape, wait)) is not None]
            row.append(f"{max(times):.2f}" if times else "done before")
        rows.append(row)
    header = ["estimator", *(f"{n_rows:,} x {n_columns:,}" for n_rows, n_columns in SHAPES)]
    sys.stdout.write(report.table(header, rows) + "\n")


if __name__ == "__main__":
    main()
