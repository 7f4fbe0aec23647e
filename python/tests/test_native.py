"""The native module: errors, interpreter lock, signals, generated code."""

import doctest
import importlib
import json
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import softwood
from softwood import SGLBRegressor, TreeRegressor, VSTClassifier, VSTRegressor, _base, _generate, _native

BOOSTED = {"n_estimators": 100_000, "max_depth": 6, "learning_rate": 0.01}
LONG = {
    "VSTRegressor": {"max_depth": 3, "n_epochs": 1_000_000, "early_stopping": False},
    "SGBRegressor": BOOSTED,
    "SGLBRegressor": BOOSTED,
    "ForestRegressor": {"n_estimators": 100_000},
}
"""Parameters whose fit takes far longer than the time limit of a test."""


def test_generated_estimators_are_up_to_date():
    assert _generate.TARGET.read_text(encoding="utf-8") == _generate.source(), (
        "run `python -m softwood._generate` after a change of a parameter table"
    )


@pytest.mark.parametrize("module", ["_base", "_callbacks", "_distribution", "_estimators", "_evaluate"])
def test_examples_in_docstrings_work(module):
    results = doctest.testmod(importlib.import_module(f"softwood.{module}"))
    assert results.attempted > 0
    assert results.failed == 0


def test_every_family_has_its_two_estimators_in_the_package():
    assert {kind.__name__ for kind in _base.REGISTRY.values()} <= set(softwood.__all__)
    assert {family for family, _ in _base.REGISTRY} == {family["name"] for family in json.loads(_native.families())}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_depth": 17}, "parameter `max_depth` = 17: expected a whole number from 0 to 16 or auto"),
        ({"langevin_noise": "none"}, "expected one of posterior, malinin, split-noise"),
        ({"virtual_ensemble": "yes"}, "parameter `virtual_ensemble`"),
        ({"n_chains": 3}, "`n_chains` is only used with"),
        ({"n_jobs": 0}, "n_jobs = 0"),
    ],
)
def test_bad_parameters_of_boosting_are_rejected(regression, params, message):
    with pytest.raises(ValueError, match=message):
        SGLBRegressor(**params).fit(*regression)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_depth": 99}, "parameter `max_depth` = 99: expected a whole number from 0 to 8 or auto"),
        ({"max_depth": "deep"}, 'parameter `max_depth` = "deep": expected a whole number'),
        ({"beta": float("nan")}, "parameter `beta`"),
        ({"leaf_model": "round"}, "expected one of constant, linear"),
        ({"beta": 0.0, "rank": -1}, "parameter `rank`"),
        ({"leaf_model": object()}, "expected one of constant, linear"),
        ({"mixing_levels": 2}, "`mixing_levels` is only used with"),
        ({"n_jobs": 0}, "n_jobs = 0"),
        ({"random_state": -1}, "random_state = -1"),
    ],
)
def test_bad_parameters_of_soft_trees_are_rejected(regression, params, message):
    with pytest.raises(ValueError, match=message):
        VSTRegressor(**params).fit(*regression)


def test_numbers_of_numpy_are_accepted(regression):
    VSTRegressor(max_depth=np.int32(1), beta=np.float32(1), n_epochs=np.uint8(5)).fit(*regression)
    SGLBRegressor(n_estimators=np.int64(20), learning_rate=np.float32(0.5), virtual_ensemble=np.bool_(True)).fit(
        *regression
    )


def test_unusable_targets_are_rejected(regression, regressor, classifier):
    X, y = regression
    with pytest.raises(ValueError, match="all target values are equal"):
        regressor().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="class"):
        classifier().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        regressor().fit(X, y[:-1])


def test_bad_weights_are_rejected(regression, regressor):
    X, y = regression
    for weights in (-np.ones(len(X)), np.zeros(len(X)), np.ones(len(X) - 1), np.full(len(X), np.nan)):
        with pytest.raises(ValueError, match=r"(?i)weight"):
            regressor().fit(X, y, sample_weight=weights)


def test_unfitted_estimators_raise(tmp_path):
    for act in (lambda: VSTRegressor().predict([[1.0]]), lambda: VSTClassifier().save(tmp_path / "model.softwood")):
        with pytest.raises(NotFittedError):
            act()


def test_other_threads_run_while_a_model_is_fitted(family, regressor):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 5))
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        by_family = {
            "vst": {"n_epochs": 200},
            "vsgbm": {"n_epochs": 200},
            "vart": {"n_epochs": 200},
            "forest": {"n_estimators": 100},
        }
        by_family |= {
            "tree": {},
            "ldt": {},
            "soft-tree": {"n_epochs": 50},
            "gp": {"n_restarts": 3},
            "gp-rnn-tree": {"n_steps": 200},
            "rnn-tree": {"n_steps": 200},
        }
        longer = by_family.get(family, {"n_estimators": 2000})
        start = time.perf_counter()
        regressor(**longer, n_jobs=1).fit(X, X[:, 0])
        end = time.perf_counter()
    finally:
        stop.set()
        thread.join()
    during = [moment for moment in ticks if start < moment < end]
    assert len(during) > 3


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent another way there")
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("name", LONG)
def test_interrupt_stops_a_fit(name, n_jobs):
    interrupted(f"""
import numpy as np, softwood
X = np.random.default_rng(0).normal(size=(500, 4))
print("working", flush=True)
softwood.{name}(**{LONG[name]!r}, n_jobs={n_jobs}).fit(X, X[:, 0])
print("done", flush=True)
""")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent another way there")
def test_interrupt_stops_a_prediction():
    """The prediction takes hours: an interrupt that is noticed only afterwards runs into the time limit."""
    interrupted(f"""
import numpy as np, softwood
X = np.random.default_rng(0).normal(size=(500_000, 4))
model = softwood.VSTRegressor(**{WIDE!r}, n_members=500, n_jobs=1).fit(X[:100], X[:100, 0])
print("working", flush=True)
model.predict_dist(X).crps(0.0)
print("done", flush=True)
""")


WIDE = {"max_depth": 4, "n_epochs": 5, "leaf_mixing": "mixture", "scaling": "standard", "rotation": "none"}


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent another way there")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_stops_a_question_about_a_few_rows(n_jobs):
    """The question takes an hour."""
    interrupted(f"""
import numpy as np, softwood
X = np.random.default_rng(0).normal(size=(300, 4))
model = softwood.VSTRegressor(**{WIDE!r}, n_members=500, n_jobs={n_jobs}).fit(X[:100], X[:100, 0])
levels = np.linspace(0.001, 0.999, 100_000)
print("working", flush=True)
model.predict_dist(X).quantile(levels)
print("done", flush=True)
""")


def interrupted(script):
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline().strip() == "working"
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert "KeyboardInterrupt" in err
    assert "done" not in out


def test_a_target_of_two_whole_numbers_is_taken_for_classes_with_a_warning(family, regressor, regression):
    X, y = regression
    has_classifier = (family, "classification") in _base.REGISTRY
    name = rf"{family.upper()[0]}\w*Classifier" if has_classifier else "a classifier"
    for target in ((y > 0).astype(int), np.where(y > 0, 2.0, -1.0), y > 0):
        with pytest.warns(UserWarning, match=rf"y has only the values .* use {name} if"):
            regressor().fit(X, target)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="y has only")
        for target in (np.where(y > 0, 0.5, 1.0), np.digitize(y, [-1, 1])):
            regressor().fit(X, target)


HUGE = 10**400


def test_huge_integers_raise_errors_that_name_the_argument(regression):
    X, y = regression
    model = TreeRegressor(random_state=0).fit(X, y)
    dist = model.predict_dist(X)
    huge = [HUGE] * len(y)
    for name, act in {
        "n_members": lambda: TreeRegressor(n_members=HUGE).fit(X, y),
        "learning_rate": lambda: VSTRegressor(learning_rate=-HUGE).fit(X, y),
        "random_state": lambda: TreeRegressor(random_state=HUGE).fit(X, y),
        "time_limit": lambda: TreeRegressor().fit(X, y, time_limit=HUGE),
        "sample_weight": lambda: TreeRegressor().fit(X, y, sample_weight=huge),
        "y": lambda: TreeRegressor().fit(X, huge),
        "y has": lambda: dist.cdf(HUGE),
        "q": lambda: dist.quantile([0.5, HUGE]),
        "level": lambda: dist.interval(HUGE),
        "n = ": lambda: dist.sample(HUGE),
        "n = -": lambda: dist.sample_functions(-HUGE),
        "n_repeats": lambda: model.importances(X, n_repeats=HUGE),
        "fold 0": lambda: softwood.evaluate(model, X, y, [([0, 1], [HUGE])]),
        "fold 0: expected": lambda: softwood.evaluate(model, X, y, [([0, 1], [2**63])]),
        "9223372036854775808 folds": lambda: softwood.evaluate(model, X, y, f"cv:{2**63}"),
    }.items():
        with pytest.raises(ValueError, match=name):
            act()


def test_arguments_that_are_not_numbers_are_named(regression):
    X, y = regression
    dist = TreeRegressor(random_state=0).fit(X, y).predict_dist(X)
    for target in ([{}] * len(y), ["a"] * len(y), np.array([None] + [1.0] * (len(y) - 1))):
        with pytest.raises(ValueError, match="y"):
            TreeRegressor().fit(X, target)
    with pytest.raises(ValueError, match="sample_weight has a cell that is not a number"):
        TreeRegressor().fit(X, y, sample_weight=["a"] * len(y))
    with pytest.raises(ValueError, match="sample_weight, row 1: the cell is masked"):
        TreeRegressor().fit(X, y, sample_weight=np.ma.masked_array(np.ones(len(y)), mask=True))
    with pytest.raises(TypeError, match="n is a float: expected a whole number"):
        dist.sample(1.5)
    with pytest.raises(ValueError, match="`prior`"):
        VSTRegressor(prior="\ud800").fit(X, y)


def test_a_parameter_with_a_similar_name_is_suggested(regression):
    for act in (
        lambda: TreeRegressor().set_params(max_dept=3),
        lambda: TreeRegressor().fit(*regression).resume(*regression, max_dept=3),
    ):
        with pytest.raises(ValueError, match=r"Invalid parameter 'max_dept' .* Did you mean 'max_depth'\?"):
            act()
    with pytest.raises(ValueError, match=r"Invalid parameter 'zzz' for estimator TreeRegressor\. Valid parameters are"):
        TreeRegressor().set_params(zzz=3)


def test_the_package_has_a_version():
    assert softwood.__version__.count(".") == 2
