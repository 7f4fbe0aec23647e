"""Tables in docs/benchmarks.md: each stands between two markers and is written anew by the command that measures it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
SCRATCH = ROOT / "target" / "bench"


def write(section: str, text: str) -> None:
    """Put `text` between the markers of a section."""
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    page = PAGE.read_text()
    head, rest = page.split(begin)
    _, tail = rest.split(end)
    PAGE.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a table; the first column is text, the others are numbers."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def processor() -> str:
    """Name this machine's processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"
