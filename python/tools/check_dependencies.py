"""Check the dependencies against deny.toml without a network: licences, banned crates and sources.

`make lint` runs this; it needs nothing but cargo and Python 3.11. It reads the part of deny.toml that needs no
database. `make audit` runs cargo-deny itself, which also checks advisories and fetches their database.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import tomllib

CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Evaluate an SPDX expression: whether the allowed licences satisfy it."""
    tokens = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def term() -> bool:
        if tokens and tokens[0] == "(":
            tokens.pop(0)
            found = any_of()
            if not tokens or tokens.pop(0) != ")":
                raise ValueError(expression)
            return found
        name = tokens.pop(0)
        if tokens and tokens[0] == "WITH":
            name = " ".join([name, tokens.pop(0), tokens.pop(0)])
        return name in allowed

    def all_of() -> bool:
        found = term()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            found = term() and found
        return found

    def any_of() -> bool:
        found = all_of()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            found = all_of() or found
        return found

    found = any_of()
    if tokens:
        raise ValueError(expression)
    return found


def problems(metadata: dict, config: dict) -> list[str]:
    """List what breaks the rules, one line each."""
    allowed = set(config["licenses"]["allow"])
    banned = {entry["name"]: entry.get("reason", "") for entry in config["bans"]["deny"]}
    found = []
    for package in metadata["packages"]:
        name, licence = package["name"], package["license"]
        where = f"{name} {package['version']}"
        if not licence:
            found.append(f"{where}: no licence is stated")
        elif not is_allowed(licence, allowed):
            found.append(f"{where}: the licence {licence} is not allowed")
        if name in banned:
            found.append(f"{where}: banned, {banned[name]}")
        if package["source"] not in (None, CRATES_IO):
            found.append(f"{where}: the source {package['source']} is not crates.io")
    return found


def main() -> int:
    """Print the problems; the exit code is 1 if there are any."""
    root = Path(__file__).parents[2]
    config = tomllib.loads((root / "deny.toml").read_text())
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--all-features"]
    metadata = json.loads(subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE).stdout)
    found = problems(metadata, config)
    for line in found:
        print(f"error: {line} (deny.toml)", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
