"""Sections of docs/benchmarks.md: each benchmark writes its tables between two markers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
SCRATCH = ROOT / "target" / "bench"


def write(section: str, text: str) -> None:
    """Replace the text between the markers of a section."""
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    page = PAGE.read_text()
    head, rest = page.split(begin)
    _, tail = rest.split(end)
    PAGE.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table; the first column is left-aligned, the others are right-aligned."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def processor() -> str:
    """Return the model name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"
