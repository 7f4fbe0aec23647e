"""Where benchmarks keep their results, and how they write tables between two markers of a page."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
EXPERIMENTS = ROOT / "docs" / "experiments"
SCRATCH = ROOT / "target" / "bench"


def data_folder() -> Path:
    """Return the folder of the public tables."""
    return Path(os.environ.get("SOFTWOOD_DATA", ROOT.parent / "shared" / "data"))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read the results so far: one JSON object per line."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def add_line(path: Path, line: dict[str, Any]) -> None:
    """Append one result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def write(section: str, text: str, page: Path = PAGE) -> None:
    """Replace the text between the markers of a section of a page."""
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    head, rest = page.read_text(encoding="utf-8").split(begin)
    _, tail = rest.split(end)
    page.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}", encoding="utf-8")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table; the first column is left-aligned, the others are right-aligned."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def versions(lines: Iterable[dict[str, Any]]) -> str:
    """List the libraries of some results with their versions."""
    return ", ".join(sorted({line["version"] for line in lines}))


def processor() -> str:
    """Return the model name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"
