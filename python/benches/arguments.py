"""Arguments that several benchmarks have."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from benches import report


def parser(doc: str | None, *, renders: str = "only write the tables") -> argparse.ArgumentParser:
    """Return a parser with `--render`, whose help is the text of the module."""
    found = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--render", action="store_true", help=renders)
    return found


def add_data(found: argparse.ArgumentParser) -> None:
    """Add the folder of the public tables."""
    found.add_argument("--data", type=Path, default=report.data_folder(), help="default: SOFTWOOD_DATA")


def add_fresh(found: argparse.ArgumentParser) -> None:
    """Add the choice to measure everything again."""
    found.add_argument("--fresh", action="store_true", help="delete earlier measurements")


def add_peers(found: argparse.ArgumentParser) -> None:
    """Add the environment of other libraries."""
    found.add_argument("--peers", type=Path, default=report.ROOT / ".venv-peers", help="environment of the libraries")


def names(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Return the reader of a comma-separated list of known names."""

    def read(text: str) -> list[str]:
        chosen = text.split(",")
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)} unknown; choose from {', '.join(known)}")
        return chosen

    return read
