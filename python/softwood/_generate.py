"""Writes `_estimators.py` from the parameter tables of the library: `python -m softwood._generate`.

The tables hold names, former names, defaults, ranges and descriptions. This module holds the layout in Python, and
an example and advice for each family.
"""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softwood import _native

TARGET = Path(__file__).with_name("_estimators.py")
WIDTH = 116


@dataclass(frozen=True)
class FamilyText:
    """What the parameter table of a family does not hold."""

    prefix: str
    """First part of the class names."""
    example: str
    """Parameters whose fit takes a moment, for the example."""
    when_to_use: str
    """Advice, shortened from the page of the family; `{VST}` is the class with that prefix for the same task."""


BOOSTED = "n_estimators=20, n_members=2, max_depth=2, learning_rate=0.1"

FAMILIES = {
    "vst": FamilyText(
        "VST",
        "max_depth=1, n_epochs=5",
        """\
        Use it for tables of up to some tens of thousands of rows if the target varies smoothly, or if the noise depends
        on the features or is not Normal. With linear leaves the mean extrapolates linearly, and knowledge (epistemic)
        uncertainty grows with the distance from the training rows.

        Use `{VSGBM}` if one soft tree is too coarse and a longer fit is acceptable, `{SGB}` or `{SGLB}` for large
        tables, many sharp steps or very many categories, and `{Tree}` if the model has to be readable.""",
    ),
    "vsgbm": FamilyText(
        "VSGBM",
        "n_estimators=2, max_depth=1, n_epochs=5",
        """\
        Use it for smooth functions of numeric columns, from some hundred to some ten thousand rows, if one soft tree is
        too coarse.

        Use `{VST}` if time matters: this model takes three to four times as long to fit. Use `{SGLB}` for large tables
        or many categories.""",
    ),
    "sgb": FamilyText(
        "SGB",
        BOOSTED,
        """\
        Use it for tables of any size with sharp steps, many columns or many categories, and if time matters. The
        members differ mainly by the rows sampled for each tree. Hard trees are constant far from the training rows: the
        mean does not extrapolate.

        Use `{SGLB}` if knowledge (epistemic) uncertainty matters, `{VST}` or `{VSGBM}` for smooth targets on a few
        thousand rows, `{Forest}` for a good model without tuning, and `{Tree}` if the model has to be readable.""",
    ),
    "sglb": FamilyText(
        "SGLB",
        BOOSTED,
        """\
        Use it for tables of any size with sharp steps, many columns or many categories, if knowledge (epistemic)
        uncertainty matters: the members approximate posterior samples. Hard trees are constant far from the training
        rows: the mean does not extrapolate, and knowledge uncertainty grows only as far as the members disagree about
        the position of the last split.

        Use `{VST}` or `{VSGBM}` for smooth targets on a few thousand rows, `{Forest}` for a good model without tuning,
        and `{Tree}` if the model has to be readable.""",
    ),
    "forest": FamilyText(
        "Forest",
        "n_estimators=20, n_members=2",
        """\
        Use it as a strong baseline without tuning: it needs no validation rows, its trees are grown in parallel, and
        more trees never hurt.

        Use `{SGB}` or `{SGLB}`, which often predict better and are smaller, `{VST}` or `{VSGBM}` for smooth targets or
        if the mean should extrapolate, and `{Tree}` if the model has to be readable.""",
    ),
    "tree": FamilyText(
        "Tree",
        "n_members=4",
        """\
        Use it to read and to explain a model: thresholds are in the units of the table, and categories have their
        names. `max_leaf_nodes` and `ccp_alpha` make the tree smaller.

        Use `{Forest}`, `{SGB}` or `{SGLB}` for accuracy: they predict better on nearly every table. Use `{VST}` or
        `{VSGBM}` if the target is a smooth function of the features.""",
    ),
}


@dataclass(frozen=True)
class TaskText:
    """The example of a task: target, expression to show, and its value."""

    task: str
    target: str
    expression: str
    value: str


TASKS = {
    "Regressor": TaskText(
        "regression",
        "y = np.sin(6 * X[:, 0])",
        "model.predict_dist(X).interval(0.9).shape",
        "(40, 2)",
    ),
    "Classifier": TaskText(
        "classification",
        'y = np.where(X[:, 0] > 0.5, "high", "low")',
        "model.classes_.tolist()",
        "['high', 'low']",
    ),
}

MAPS = {
    "column": ("dict[str, int]", "dict of column names and directions (1 or -1)"),
    "class": ("dict[Any, float]", "dict of classes and weights"),
}
"""Type annotation and description of a parameter that maps names to numbers, by what the names denote."""

RUN_PARAMETERS = """\
random_state : int, RandomState instance or None, default=None
    Seed of all random numbers. On one kind of processor, the same seed, data and version give the same model with
    any number of threads; on another kind of processor the model may differ. An integer equals `--seed` of the
    command line.
n_jobs : int or None, default=None
    Number of threads; None and -1: one per core.
verbose : int, default=0
    What `fit` prints: 0 nothing, 1 a line per stage and every few seconds, 2 a line per event.
"""

ATTRIBUTES = """\
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if the training table had names.
{classes}training_ : dict
    Training report: training curve, settings tried and chosen, and whether the fit was stopped.
"""

CLASSES = """\
classes_ : ndarray of shape (n_classes,)
    Class labels, in the order of the probabilities.
"""

HEADER = '''\
"""The estimators. Generated by `python -m softwood._generate` from the parameter tables: do not edit."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from softwood._base import Classifier, Regressor
'''


def source() -> str:
    """Return the text of the module."""
    parts = [HEADER]
    for family in json.loads(_native.families()):
        parts += [_estimator(family, kind) for kind in TASKS]
    return "\n\n".join(parts)


def _estimator(family: dict[str, Any], kind: str) -> str:
    name = FAMILIES[family["name"]].prefix + kind
    family = {**family, "params": [spec for spec in family["params"] if _has_parameter(kind, spec)]}
    lines = [
        f"class {name}({kind}):",
        _indented(_docstring(family, kind, name), 4),
        f'    _family = "{family["name"]}"',
        *_former_names(family["params"]),
        "",
        "    def __init__(",
        "        self,",
        "        *,",
        *(f"        {_argument(spec)}," for spec in family["params"]),
        "        random_state: Any = None,",
        "        n_jobs: int | None = None,",
        "        verbose: int = 0,",
        "    ) -> None:",
        *(f"        self.{spec['name']} = {spec['name']}" for spec in family["params"]),
        "        self.random_state = random_state",
        "        self.n_jobs = n_jobs",
        "        self.verbose = verbose",
    ]
    return "\n".join(lines) + "\n"


def _has_parameter(kind: str, spec: dict[str, Any]) -> bool:
    """Return whether estimators of a kind have a parameter; regressors have none about classes."""
    return kind == "Classifier" or spec["kind"].get("keys") != "class"


def _former_names(params: list[dict[str, Any]]) -> list[str]:
    """Write the table of former names, if there are any."""
    pairs = [(former, spec["name"]) for spec in params for former in spec["former_names"]]
    if not pairs:
        return []
    return [
        "    _former_names: ClassVar = {",
        *(f'        "{former}": "{name}",' for former, name in pairs),
        "    }",
    ]


def _docstring(family: dict[str, Any], kind: str, name: str) -> str:
    task, texts = TASKS[kind], FAMILIES[family["name"]]
    summary = family["summary"]
    title = f"{summary[0].upper()}{summary.partition(':')[0][1:]} for {task.task}."
    parameters = "".join(_parameter(spec) for spec in family["params"]) + RUN_PARAMETERS
    attributes = ATTRIBUTES.format(classes=CLASSES if kind == "Classifier" else "")
    classes = {texts.prefix: texts.prefix + kind for texts in FAMILIES.values()}
    notes = textwrap.dedent(texts.when_to_use).format(**classes).split("\n\n")
    example = [
        ">>> import numpy as np",
        f">>> from softwood import {name}",
        ">>> X = np.linspace(0, 1, 40)[:, None]",
        f">>> {task.target}",
        f">>> model = {name}({texts.example}, random_state=0).fit(X, y)",
        f">>> {task.expression}",
        task.value,
    ]
    sections = [
        f'"""{title}',
        f"{summary[0].upper()}{summary[1:]}.",
        "A parameter that is None by default is set by the model, unless its description says otherwise.",
        _section("Parameters", parameters),
        _section("Attributes", attributes),
        _section("Notes", "\n\n".join(textwrap.fill(paragraph, WIDTH) for paragraph in notes)),
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
