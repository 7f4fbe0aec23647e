"""Every command and script in README and guides runs, and every output that they show is what one gets.

`SOFTWOOD_WRITE_DOCS=1 python -m pytest python/tests/test_docs.py` writes the outputs and the picture anew.

Results are the same bits on one kind of processor only. A page names the kind that its outputs were made on: there
words and figures are compared, elsewhere the first word of each line.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/guide/quickstart.md", "docs/guide/explain.md", "docs/guide/reproduce.md"]
PROGRAM = ROOT / "target" / "release"
WRITES = bool(os.environ.get("SOFTWOOD_WRITE_DOCS"))

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KIND = re.compile(r"<!-- outputs were made on (.*?) -->")
NOT_RUN = "<!-- not run -->"
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
SECONDS = re.compile(r"\d+(?:\.\d+)?(?= ?(?:s|ms|seconds)\b)")
BAR = re.compile(r"[\u2580-\u259f]+")

RELATIVE, ABSOLUTE = 0.02, 0.002
"""Tolerance of a figure on the kind of processor that made it."""


@dataclass
class Page:
    """A page, its runnable blocks, and where its outputs stand."""

    path: Path
    text: str
    outputs: list[tuple[str, str]] = field(default_factory=list)

    def run(self, folder: Path) -> None:
        """Run every block in order; remember each output block with what was printed before it."""
        scripts: dict[str, object] = {}
        printed = ""
        for block in BLOCK.finditer(self.text):
            language, body = block.groups()
            if self.text[: block.start()].rstrip().endswith(NOT_RUN):
                continue
            if language == "sh":
                printed = _shell(body, folder)
            elif language == "python":
                _python(body, scripts, folder)
            elif language == "text":
                self.outputs.append((body, printed))


def _shell(script: str, folder: Path) -> str:
    environment = {**os.environ, "PATH": f"{PROGRAM}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-ec", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{script}\n{done.stderr}"
    return done.stdout


def _python(script: str, names: dict[str, object], folder: Path) -> None:
    before = Path.cwd()
    os.chdir(folder)
    try:
        exec(compile(script, "docs", "exec"), names)
    finally:
        os.chdir(before)


def processor() -> str:
    """Name the kind of processor as far as results depend on it."""
    flags = ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        flags = cpuinfo.read_text()
    widest = next((name for name in ("avx512f", "avx2", "asimd") if re.search(rf"\b{name}\b", flags)), "no vectors")
    return f"{platform.machine()} with {widest}"


def shown_part(shown: str, printed: str) -> str:
    """Give the part of an output that a page shows: from the line that begins with the first words shown."""
    first = shown.splitlines()[0] if shown.strip() else ""
    words = NUMBER.split(first)[0].strip()
    lines = printed.splitlines()
    start = next((at for at, line in enumerate(lines) if words and line.strip().startswith(words)), 0)
    return "\n".join(lines[start:]).rstrip() + "\n"


def differences(shown: str, found: str, *, is_same_processor: bool) -> list[str]:
    """List the lines that differ: in words or by more than the tolerance, or on another processor in labels."""
    ours, theirs = shown.splitlines(), found.splitlines()
    if len(ours) != len(theirs):
        return [f"{len(ours)} lines are shown, {len(theirs)} are printed:\n{found}"]
    if not is_same_processor:
        return [] if _labels(ours) == _labels(theirs) else [f"other labels are printed:\n{found}"]
    return [f"shown   {a}\nprinted {b}" for a, b in zip(ours, theirs, strict=True) if not _is_like(a, b)]


def _labels(lines: list[str]) -> list[str]:
    """Give the first word of each line, sorted: the order may depend on figures."""
    words = [NUMBER.sub("#", line).split() for line in lines]
    return sorted(line[0] if line else "" for line in words)


def _is_like(shown: str, found: str) -> bool:
    shown, found = (BAR.sub("", SECONDS.sub("0", line)) for line in (shown, found))
    words = [NUMBER.sub("#", line).split() for line in (shown, found)]
    pairs = zip(map(float, NUMBER.findall(shown)), map(float, NUMBER.findall(found)), strict=False)
    return words[0] == words[1] and all(abs(a - b) <= ABSOLUTE + RELATIVE * max(abs(a), abs(b)) for a, b in pairs)


def _is_same_processor(text: str) -> bool:
    kind = KIND.search(text)
    return kind is not None and kind[1] == processor()


def _write(page: Page) -> None:
    outputs = iter(page.outputs)

    def renew(block: re.Match[str]) -> str:
        if block[1] != "text":
            return block[0]
        return f"```text\n{shown_part(*next(outputs))}```"

    text = BLOCK.sub(renew, page.text)
    kind = f"<!-- outputs were made on {processor()} -->"
    text = KIND.sub(kind, text) if KIND.search(text) else f"{text.rstrip()}\n\n{kind}\n"
    page.path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_page_runs_and_shows_what_is_printed(name, tmp_path):
    path = ROOT / name
    page = Page(path, path.read_text(encoding="utf-8"))
    page.run(tmp_path)
    if WRITES:
        _write(page)
        return
    is_same_processor = _is_same_processor(page.text)
    for shown, printed in page.outputs:
        found = differences(shown, shown_part(shown, printed), is_same_processor=is_same_processor)
        assert not found, f"{name} is stale (SOFTWOOD_WRITE_DOCS=1 renews it):\n" + "\n".join(found)


def test_picture_is_what_the_demo_draws(tmp_path):
    _shell("softwood demo", tmp_path)
    drawn = (tmp_path / "demo" / "demo.svg").read_text(encoding="utf-8")
    picture = ROOT / "docs" / "img" / "demo.svg"
    if WRITES:
        picture.write_text(drawn, encoding="utf-8")
        return
    kept = picture.read_text(encoding="utf-8")
    tags = [re.findall(r"<(\w+)", text) for text in (kept, drawn)]
    assert tags[0] == tags[1], "the picture is stale (SOFTWOOD_WRITE_DOCS=1 renews it)"
    if _is_same_processor((ROOT / "README.md").read_text(encoding="utf-8")):
        pairs = zip(NUMBER.findall(kept), NUMBER.findall(drawn), strict=True)
        assert all(abs(float(a) - float(b)) <= 2 for a, b in pairs), "the picture is stale"


@pytest.mark.skipif(
    not (os.environ.get("SOFTWOOD_SLOW") and os.environ.get("SOFTWOOD_DATA")),
    reason="slow: `make test-all` with SOFTWOOD_DATA runs it",
)
@pytest.mark.parametrize("name", ["yacht", "concrete"])
def test_scores_of_the_readme_are_current(name):
    """The mean over seeds 0 to 2 of thirty fits repeats within 0.05."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| {name} \|[^|]*\| ([-.\d]+) \|", readme, re.MULTILINE)
    assert row is not None
    table = Path(os.environ["SOFTWOOD_DATA"]) / "gal" / f"{name}.parquet"
    command = "softwood evaluate {} --target target --model vst --protocol paper:0.2,10 --seed {} --json"
    reports = [json.loads(_shell(command.format(table, seed), ROOT)) for seed in range(3)]
    scores = [report["models"][0]["mean"]["log_likelihood_std"] for report in reports]
    assert abs(sum(scores) / 3 - float(row[1])) < 0.05


def test_stale_figures_would_be_found():
    shown = "auroc 0.8097 of 2000 rows in 1.2 s \u2588\u2588"

    def is_stale(found, *, is_same_processor):
        return bool(differences(shown, found, is_same_processor=is_same_processor))

    assert not is_stale("auroc 0.8101 of 2000 rows in 7 s \u2588", is_same_processor=True)
    assert is_stale("auroc 0.9166 of 2000 rows in 1.2 s", is_same_processor=True)
    assert not is_stale("auroc 0.9166 of 2000 rows in 1.2 s", is_same_processor=False)
    assert is_stale("AUROC 0.8097 of 2000 rows in 1.2 s", is_same_processor=False)
    assert is_stale(shown + "\nmore", is_same_processor=False)
