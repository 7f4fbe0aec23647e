"""Knowledge uncertainty on problems with known truth and on gap splits of public tables, beside other libraries.

Every fit adds one line to `target/bench/truth.jsonl`. A fit that has a line is not repeated, so that a run can be
interrupted and resumed, or be done in parts:

    python -m benches.truth                                     # everything: a day
    python -m benches.truth --quick                             # fewer seeds, inputs and splits
    python -m benches.truth --parts one,demo --models vst,sglb
    python -m benches.truth --choose --parts one                # seeds and tables to choose by, not to report
    python -m benches.truth --render

Reports use the seeds from 1000 and gap splits of the tables in the folder `gal` of `SOFTWOOD_DATA` (or `--data`).
The page, docs/experiments/truth.md, keeps the rows of models that have no results here. `--choose` uses the seeds from
0 and gap splits of the tables in `evans`; its results are printed and not written into the page.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benches import report, truth_models, truth_problems
from benches.truth_worker import Job

LINES = report.SCRATCH / "truth.jsonl"
PAGE = report.ROOT / "docs" / "experiments" / "truth.md"
CHOOSING_SEED, REPORTING_SEED = 0, 1000
SYNTHETIC = ("one", "three", "eight", "outliers")
N_SEEDS = {"one": 16, "three": 8, "eight": 8, "demo": 8, "outliers": 8}
QUICK_SEEDS = {"one": 8, "three": 2, "eight": 2, "demo": 8, "outliers": 2}
QUICK_INPUTS = 2
"""Inputs of a table whose middle third is held out."""
TEST_ROWS, MAX_SPLITS = 1000, 10
"""Random splits of a table: as many as have this number of test rows together, up to a limit."""
QUICK_TEST_ROWS, QUICK_MAX_SPLITS = 150, 3

Line = dict[str, Any]


# --- measuring


def jobs_of(args: argparse.Namespace) -> Iterator[Job]:
    """List the fits of the parts and models that are asked for, seed by seed."""
    first = CHOOSING_SEED if args.choose else REPORTING_SEED
    for part in args.parts:
        for name, seed in problems_of(part, first, args):
            yield from (Job(model, part, name, seed) for model in args.models)


def problems_of(part: str, first: int, args: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """List the problems of a part with their seeds."""
    if part in truth_problems.NAMES:
        n_seeds = args.seeds or (QUICK_SEEDS if args.quick else N_SEEDS)[part]
        for seed in range(first, first + n_seeds):
            yield from ((name, seed) for name in truth_problems.NAMES[part])
    elif part == "gaps":
        for table in gap_tables(args):
            inputs = truth_problems.gap_inputs(args.data, table, QUICK_INPUTS if args.quick else None)
            yield from ((f"{table} {column}", first) for column in inputs)
    elif part == "missing":
        yield from ((table, first) for table in gap_tables(args))
    else:
        for table in random_tables():
            n_rows = len(truth_problems.read(args.data, table)[1])
            n_test = min(n_rows // 10, truth_problems.MAX_TEST_ROWS)
            enough, limit = (QUICK_TEST_ROWS, QUICK_MAX_SPLITS) if args.quick else (TEST_ROWS, MAX_SPLITS)
            yield from ((table, first + split) for split in range(min(math.ceil(enough / n_test), limit)))


def gap_tables(args: argparse.Namespace) -> list[str]:
    """Return the tables of gap splits."""
    names = truth_problems.EVANS if args.choose else truth_problems.GAL
    return [f"{'evans' if args.choose else 'gal'}/{name}" for name in names]


def random_tables() -> list[str]:
    """Return the tables of random splits."""
    return [f"gal/{name}" for name in truth_problems.GAL] + [f"evans/{name}" for name in truth_problems.EVANS]


def known_lines() -> list[Line]:
    """Read the results so far."""
    return [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []


def job_of(line: Line) -> Job:
    """Return the job that made a line."""
    return Job(line["model"], line["part"], line["name"], line["seed"])


def run(args: argparse.Namespace) -> None:
    """Measure what has no line yet: each process a share of the jobs of one environment."""
    LINES.parent.mkdir(parents=True, exist_ok=True)
    done = {job_of(line) for line in known_lines()}
    jobs = [job for job in jobs_of(args) if job not in done]
    lock = threading.Lock()
    for is_peer, python in ((False, Path(sys.executable)), (True, args.peers)):
        own = [job for job in jobs if (job.model in truth_models.PEERS) == is_peer]
        if own and not python.exists():
            print(f"{python} does not exist: other libraries are left out", file=sys.stderr)
            continue
        shares = [own[at :: args.processes] for at in range(args.processes)]
        with ThreadPoolExecutor(args.processes) as pool:
            list(pool.map(partial(run_share, python, args.data, lock), shares))


def run_share(python: Path, data: Path, lock: threading.Lock, jobs: Sequence[Job]) -> None:
    """Measure jobs in one process of an environment and write a line for each."""
    if not jobs:
        return
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    environment = {**os.environ, **threads, "PYTHONPATH": str(report.ROOT / "python")}
    command = [str(python), "-m", "benches.truth_worker", str(data)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        for job in jobs:
            worker.stdin.write(json.dumps(asdict(job)) + "\n")
            worker.stdin.flush()
            line = worker.stdout.readline()
            if not line:
                raise RuntimeError(f"the worker ended at {job}")
            with lock, LINES.open("a") as file:
                file.write(line)
            print(f"{job}: {json.loads(line)['seconds']:.1f} s", file=sys.stderr)
        worker.stdin.close()


# --- reporting


def figure(values: Iterable[float], digits: int = 2) -> str:
    """Format a mean without its leading zero; nothing if there are no values."""
    known = list(values)
    if not known:
        return ""
    text = f"{fmean(known):.{digits}f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def models_of(lines: Iterable[Line]) -> list[str]:
    """Return the models that have lines, in the order of the tables."""
    found = {line["model"] for line in lines}
    return [model for model in truth_models.MODELS if model in found]


def complete(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of the models that were measured on every problem of a part: others do not compare."""
    problems = {(line["name"], line["seed"]) for line in lines}
    counts = Counter(line["model"] for line in lines)
    return [line for line in lines if counts[line["model"]] == len(problems)]


def left_out(lines: Sequence[Line]) -> str:
    """Name the models that a table leaves out because some of their fits are missing."""
    n_problems = len({(line["name"], line["seed"]) for line in lines})
    counts = Counter(line["model"] for line in lines)
    names = [f"{truth_models.title(m)} ({counts[m]})" for m in models_of(lines) if counts[m] < n_problems]
    return f"\n\nNot shown, as not all of the {n_problems} fits are done: {', '.join(names)}." if names else ""


def zone_values(lines: Iterable[Line], zone: str, score: str) -> list[float]:
    """Return a score of each line that has the zone."""
    return [line["zones"][zone][score] for line in lines if zone in line["zones"]]


def synthetic_table(lines: Sequence[Line]) -> str:
    """Compare models on synthetic problems: means over problems."""
    zones = ("data", "gap", "beyond")
    rows = []
    for model in models_of(lines):
        own = [line for line in lines if line["model"] == model]
        ratios = [
            line["zones"]["gap"]["knowledge_sd"] / max(line["zones"]["data"]["knowledge_sd"], 1e-9) for line in own
        ]
        row = [truth_models.title(model), f"{len(own)}"]
        for score in ("band", "coverage_90"):
            row.append(" / ".join(figure(zone_values(own, zone, score)) for zone in zones))
        row.append(f"{math.exp(fmean(math.log(max(ratio, 1e-9)) for ratio in ratios)):.1f}")
        row.append(" / ".join(figure(zone_values(own, zone, "log_score_median")) for zone in zones))
        row.append(" / ".join(figure(zone_values(own, zone, "log_score")) for zone in zones))
        row.append(" / ".join(figure(zone_values(own, zone, "crps"), 3) for zone in zones))
        rows.append([*row, f"{fmean(line['seconds'] for line in own):.1f}"])
    header = [
        "model",
        "problems",
        "true mean in the 90% knowledge band",
        "y in the 90% interval",
        "knowledge sd, gap/data",
    ]
    header += ["median log score", "mean log score", "CRPS", "fit s"]
    return report.table(header, rows)


def kinds_table(lines: Sequence[Line]) -> str:
    """Show the band in gap and beyond for each kind of problem."""
    names = list(dict.fromkeys(line["name"] for line in lines))
    rows = []
    for model in models_of(lines):
        row = [truth_models.title(model)]
        for name in names:
            own = [line for line in lines if (line["model"], line["name"]) == (model, name)]
            row.append(" / ".join(figure(zone_values(own, zone, "band")) for zone in ("gap", "beyond")))
        rows.append(row)
    return report.table(["true mean in the band: gap / beyond", *names], rows)


def table_of(line: Line) -> str:
    """Return the public table of a line."""
    return str(line["name"]).split(" ", maxsplit=1)[0]


def means_by_table(lines: Sequence[Line], zone: str, score: str) -> dict[str, float]:
    """Average a score over the splits of each table."""
    tables = dict.fromkeys(table_of(line) for line in lines)
    return {table: fmean(zone_values([x for x in lines if table_of(x) == table], zone, score)) for table in tables}


def gaps_table(lines: Sequence[Line]) -> str:
    """Compare models on gap splits: means over the tables of the means over their splits."""
    n_splits = len({line["name"] for line in lines})
    rows = []
    for model in models_of(lines):
        own = [line for line in lines if line["model"] == model]
        covered = means_by_table(own, "gap", "coverage_90")
        worst = min(covered, key=lambda table: covered[table])
        scores = zone_values(own, "gap", "log_score")
        inside = [figure(means_by_table(own, "data", score).values()) for score in ("coverage_90", "log_score")]
        row = [truth_models.title(model), f"{len(own)} of {n_splits}", inside[0], figure(covered.values())]
        row += [f"{figure([covered[worst]])} ({worst.split('/')[1]})", inside[1]]
        row += [f"{median(scores):.2f}", f"{min(scores):.1f}", f"{sum(score < -10 for score in scores)}"]
        row.append(figure(means_by_table(own, "gap", "crps").values(), 3))
        rows.append(row)
    header = [
        "model",
        "splits",
        "coverage of 90%: data",
        "gap",
        "worst table, gap",
        "log score: data",
        "gap, median split",
    ]
    return report.table([*header, "gap, worst split", "splits below -10", "CRPS: gap"], rows)


def gap_tables_table(lines: Sequence[Line]) -> str:
    """Show coverage in the gap and the worst log score of each table."""
    tables = list(dict.fromkeys(table_of(line) for line in lines))
    rows = []
    for model in models_of(lines):
        row = [truth_models.title(model)]
        for table in tables:
            own = [line for line in lines if line["model"] == model and table_of(line) == table]
            scores = zone_values(own, "gap", "log_score")
            row.append(f"{figure(zone_values(own, 'gap', 'coverage_90'))}, {min(scores):.1f}" if scores else "")
        rows.append(row)
    return report.table(["coverage in the gap, worst log score", *(table.split("/")[1] for table in tables)], rows)


def random_table(lines: Sequence[Line]) -> str:
    """Show how far the coverage of 90% intervals on random splits is from 0.9."""
    rows = []
    for model in models_of(lines):
        own = [line for line in lines if line["model"] == model]
        covered = means_by_table(own, "data", "coverage_90")
        tested = {t: sum(x["zones"]["data"]["n_rows"] for x in own if table_of(x) == t) for t in covered}
        errors = {table: abs(value - 0.9) for table, value in covered.items()}
        worst = max(errors, key=lambda table: errors[table])
        # E|Z| of the binomial error of an exact 90% interval
        expected = fmean(math.sqrt(0.09 / tested[table] * 2 / math.pi) for table in covered)
        row = [truth_models.title(model), f"{len(covered)}", figure(covered.values(), 3), figure(errors.values(), 3)]
        row += [figure([expected], 3), f"{figure([covered[worst]], 3)} ({worst})"]
        row.append(figure(means_by_table(own, "data", "log_score").values(), 3))
        rows.append(row)
    header = ["model", "tables", "mean coverage of 90%", "mean error of the coverage", "... of exact intervals"]
    return report.table([*header, "worst table", "log score"], rows)


def coverage_table(lines: Sequence[Line]) -> str:
    """Show the coverage of each public table on random splits."""
    tables = list(dict.fromkeys(table_of(line) for line in lines))
    rows = []
    for model in models_of(lines):
        own = means_by_table([line for line in lines if line["model"] == model], "data", "coverage_90")
        rows.append([truth_models.title(model), *(figure([own[t]]) if t in own else "" for t in tables)])
    return report.table(["coverage of 90%", *(table.split("/")[1] for table in tables)], rows)


def missing_table(lines: Sequence[Line]) -> str:
    """Compare complete rows with rows that lack a cell: means over the tables."""
    rows = []
    for model in models_of(lines):
        own = [line for line in lines if line["model"] == model]
        row = [truth_models.title(model), f"{len(own)}"]
        for score, digits in (("coverage_90", 3), ("log_score", 2), ("crps", 3)):
            pair = (figure(zone_values(own, zone, score), digits) for zone in ("data", "missing"))
            row.append(" / ".join(pair))
        worst = min(own, key=lambda line: line["zones"]["missing"]["log_score"])
        score = worst["zones"]["missing"]["log_score"]
        rows.append([*row, f"{score:.1f} ({table_of(worst).split('/')[1]})"])
    header = ["model", "tables", "coverage of 90%: complete / missing", "log score", "CRPS"]
    return report.table([*header, "lowest log score, missing"], rows)


def demo_table(lines: Sequence[Line]) -> str:
    """Show the coverage of 90% intervals on the demo's function, seed by seed."""
    rows = []
    for model in models_of(lines):
        own = sorted((line for line in lines if line["model"] == model), key=lambda line: int(line["seed"]))
        empty = zone_values(own, "empty", "coverage_90")
        row = [truth_models.title(model), figure(zone_values(own, "data", "coverage_90")), figure(empty)]
        row += [figure([min(empty)]), " ".join(figure([value]) for value in empty)]
        rows.append([*row, *(figure(zone_values(own, "empty", name)) for name in ("band", "log_score_median"))])
    header = ["model", "y in 90%: data", "without data", "lowest seed", "seeds", "true mean in the band, without data"]
    return report.table([*header, "median log score, without data"], rows)


def sections_of(lines: Sequence[Line]) -> dict[str, str]:
    """Return the text of each section of the page that has results."""
    tables: dict[str, tuple[str, Callable[[Sequence[Line]], str]]] = {
        **{part: (part, synthetic_table) for part in SYNTHETIC},
        "kinds": ("one", kinds_table),
        "gaps": ("gaps", gaps_table),
        "gap-tables": ("gaps", gap_tables_table),
        "random": ("random", random_table),
        "coverage": ("random", coverage_table),
        "demo": ("demo", demo_table),
        "missing": ("missing", missing_table),
    }
    texts = {}
    for section, (part, table) in tables.items():
        own = [line for line in lines if line["part"] == part]
        if own:
            note = left_out(own) if section == part else ""
            texts[section] = table(complete(own)) + note
    return texts


def rows_by_model(text: str) -> tuple[list[str], dict[str, str]]:
    """Return the header lines of a table, and its rows by their first cell."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return lines[:2], {line.split("|")[1].strip(): line for line in lines[2:]}


def merged(former: str, text: str) -> str:
    """Return a table with the rows of a former one that were not measured again, if both have the same columns."""
    former_header, former_rows = rows_by_model(former)
    header, rows = rows_by_model(text)
    if former_header != header:
        return text.strip()
    all_rows = {**former_rows, **rows}
    titles = [truth_models.title(model) for model in truth_models.MODELS]
    note = [line for line in text.splitlines() if line and not line.startswith("|")]
    table = "\n".join([*header, *(all_rows[title] for title in titles if title in all_rows)])
    return "\n\n".join([table, *note])


def render(*, choose: bool) -> None:
    """Write the results of reporting seeds into the page, or print those of choosing seeds."""
    lines = [line for line in known_lines() if (line["seed"] < REPORTING_SEED) == choose]
    sections = sections_of(lines)
    if choose:
        print("\n\n".join(f"{name}\n\n{text}" for name, text in sections.items()))
        return
    page = PAGE.read_text(encoding="utf-8")
    versions = sorted({line["version"] for line in lines})
    if {line["model"] for line in lines} == set(truth_models.MODELS):
        text = f"Versions: {', '.join(versions)}. Fit times are processor seconds on {report.processor()}."
        sections["versions"] = text
    for name, text in sections.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        head, rest = page.split(begin)
        former, tail = rest.split(end)
        page = f"{head}{begin}\n\n{merged(former, text)}\n\n{end}{tail}"
    PAGE.write_text(page, encoding="utf-8")


def names(known: Sequence[str], text: str) -> list[str]:
    """Read a comma-separated list of known names."""
    chosen = text.split(",")
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} unknown; choose from {', '.join(known)}")
    return chosen


def main() -> None:
    """Run the command."""
    default = Path(os.environ.get("SOFTWOOD_DATA", report.ROOT.parent / "shared" / "data"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--parts", type=partial(names, truth_problems.PARTS), default=list(truth_problems.PARTS))
    parser.add_argument("--models", type=partial(names, truth_models.MODELS), default=None)
    parser.add_argument("--seeds", type=int, default=None, help="seeds of each synthetic problem")
    parser.add_argument("--choose", action="store_true", help="use the seeds and tables for choosing; print the tables")
    parser.add_argument("--quick", action="store_true", help="fewer seeds, inputs and splits")
    parser.add_argument("--peers", type=Path, default=report.ROOT / ".venv-peers" / "bin" / "python")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--render", action="store_true", help="only write the page")
    args = parser.parse_args()
    args.models = args.models or list(truth_models.MODELS)
    if args.fresh:
        LINES.unlink(missing_ok=True)
    if not args.render:
        run(args)
    render(choose=args.choose)


if __name__ == "__main__":
    main()
