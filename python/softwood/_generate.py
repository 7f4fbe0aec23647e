"""Writes `_estimators.py` from the parameter tables of the library: `python -m softwood._generate`.

The tables hold names, defaults, ranges and explanations; here stands only how they look in Python.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

from softwood import _native

TARGET = Path(__file__).with_name("_estimators.py")
WIDTH = 116

BOOSTED = "n_estimators=20, n_members=2, max_depth=2, learning_rate=0.1"

FAMILIES = {
    "vst": ("VST", "depth=1, n_epochs=5"),
    "vsgbm": ("VSGBM", "n_trees=2, depth=1, n_epochs=5"),
    "sgb": ("SGB", BOOSTED),
    "sglb": ("SGLB", BOOSTED),
    "forest": ("Forest", "n_estimators=20, n_members=2"),
    "tree": ("Tree", "n_members=4"),
}
"""How the estimators of a family are called, and parameters that fit its example in a moment."""

TASKS = {
    "Regressor": (
        "regression",
        "y = np.sin(6 * X[:, 0])",
        "model.predict_dist(X).interval(0.9).shape",
        "(40, 2)",
    ),
    "Classifier": (
        "classification",
        'y = np.where(X[:, 0] > 0.5, "high", "low")',
        "model.classes_.tolist()",
        "['high', 'low']",
    ),
}
"""What each kind of estimator does, and an example of it: target, question, answer."""

MAPS = {
    "column": ("dict[str, int]", "dict of column names and directions (1 or -1)"),
    "class": ("dict[Any, float]", "dict of classes and weights"),
}
"""What a parameter that is a map looks like, by what its names are of: as a type, and in words."""

RUN_PARAMETERS = """\
random_state : int, RandomState instance or None, default=None
    Seed of every random number. The same seed, data and version give the same model on any number of threads;
    an integer means what `--seed` means on the command line.
n_jobs : int or None, default=None
    Threads; None and -1 take one per core.
"""

ATTRIBUTES = """\
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Their names, where the table had names.
{classes}training_ : dict
    How the model came about: loss curve, what was tried and what was chosen.
"""

CLASSES = """\
classes_ : ndarray of shape (n_classes,)
    The classes, in the order of the probabilities.
"""

HEADER = '''\
"""The estimators. Written by `python -m softwood._generate` from the parameter tables: change those, not this."""

from __future__ import annotations

from typing import Any, Literal

from softwood._base import Classifier, Regressor
'''


def source() -> str:
    """Return the text of the module."""
    parts = [HEADER]
    for family in json.loads(_native.families()):
        parts += [_estimator(family, kind) for kind in TASKS]
    return "\n\n".join(parts)


def _estimator(family: dict[str, Any], kind: str) -> str:
    prefix, _ = FAMILIES[family["name"]]
    name = prefix + kind
    family = {**family, "params": [spec for spec in family["params"] if _concerns(spec["kind"], kind)]}
    lines = [
        f"class {name}({kind}):",
        _indented(_docstring(family, kind, name), 4),
        f'    _family = "{family["name"]}"',
        "",
        "    def __init__(",
        "        self,",
        "        *,",
        *(f"        {_argument(spec)}," for spec in family["params"]),
        "        random_state: Any = None,",
        "        n_jobs: int | None = None,",
        "    ) -> None:",
        *(f"        self.{spec['name']} = {spec['name']}" for spec in family["params"]),
        "        self.random_state = random_state",
        "        self.n_jobs = n_jobs",
    ]
    return "\n".join(lines) + "\n"


def _concerns(kind: dict[str, Any], estimator: str) -> bool:
    """Say whether a parameter has a meaning for a kind of estimator: what is said of classes has none without them."""
    return estimator == "Classifier" or kind.get("keys") != "class"


def _docstring(family: dict[str, Any], kind: str, name: str) -> str:
    task, target, question, answer = TASKS[kind]
    _, quick = FAMILIES[family["name"]]
    summary = family["summary"]
    title = f"{summary[0].upper()}{summary.partition(':')[0][1:]} for {task}."
    parameters = "".join(_parameter(spec) for spec in family["params"]) + RUN_PARAMETERS
    attributes = ATTRIBUTES.format(classes=CLASSES if kind == "Classifier" else "")
    example = [
        ">>> import numpy as np",
        f">>> from softwood import {name}",
        ">>> X = np.linspace(0, 1, 40)[:, None]",
        f">>> {target}",
        f">>> model = {name}({quick}, random_state=0).fit(X, y)",
        f">>> {question}",
        answer,
    ]
    sections = [
        f'"""{title}',
        f"{summary[0].upper()}{summary[1:]}.",
        "Where a parameter may be None, the model chooses.",
        _section("Parameters", parameters),
        _section("Attributes", attributes),
        _section("Examples", "\n".join(example) + "\n"),
    ]
    return "\n\n".join(sections) + '\n"""\n'


def _section(title: str, body: str) -> str:
    return f"{title}\n{'-' * len(title)}\n{body.rstrip()}\n".rstrip()


def _parameter(spec: dict[str, Any]) -> str:
    kind = spec["kind"]
    text = spec["doc"].replace("auto:", "None:") + _range(kind)
    body = textwrap.fill(text, WIDTH - 4, initial_indent="    ", subsequent_indent="    ")
    names = [f'"{name}"' for name in kind.get("names", ())]
    types = "{" + ", ".join(names) + "}" if names else _described_type(kind)
    none = " or None" if spec["auto"] else ""
    return f"{spec['name']} : {types}{none}, default={_value(spec['default'])}\n{body}\n"


def _range(kind: dict[str, Any]) -> str:
    if "min" not in kind or kind.get("keys") == "column":
        return ""
    return f" From {_number(kind['min'])} to {_number(kind['max'])}."


def _argument(spec: dict[str, Any]) -> str:
    kind = spec["kind"]
    names = kind.get("names", ())
    types = "Literal[" + ", ".join(f'"{name}"' for name in names) + "]" if names else _plain_type(kind)
    none = " | None" if spec["auto"] else ""
    return f"{spec['name']}: {types}{none} = {_value(spec['default'])}"


def _plain_type(kind: dict[str, Any]) -> str:
    if kind["type"] == "map":
        words = [f'Literal["{word}"]' for word in kind["words"]]
        return " | ".join([MAPS[kind["keys"]][0], *words])
    return {"float": "float", "int": "int", "bool": "bool"}[kind["type"]]


def _described_type(kind: dict[str, Any]) -> str:
    if kind["type"] == "map":
        return ", ".join([MAPS[kind["keys"]][1], *(f'"{word}"' for word in kind["words"])])
    return _plain_type(kind)


def _value(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else repr(default)


def _number(value: float) -> str:
    return f"{value:g}" if abs(value) >= 1e6 or 0 < abs(value) < 1e-3 else f"{value:.12g}"


def _indented(text: str, by: int) -> str:
    return textwrap.indent(text, " " * by)


if __name__ == "__main__":
    TARGET.write_text(source(), encoding="utf-8")
