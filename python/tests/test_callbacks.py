"""Callbacks, time limits and progress of a fit, for every family and task."""

import json
import threading
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_regressor

import softwood
from softwood import Checkpoint, Event, SGBRegressor, SGLBClassifier, _native
from softwood._base import REGISTRY

RESUMABLE = sorted(family["name"] for family in json.loads(_native.families()) if family["supports_warm_start"])


@pytest.fixture
def rows(kind, regression, classification):
    return regression if is_regressor(kind()) else classification


def summary(model, X):
    dist = model.predict_dist(X)
    return np.array([dist.total, dist.knowledge])


class StopAt:
    """A callback that stops the fit at its n-th event."""

    def __init__(self, n):
        self.n = n
        self.n_events = 0

    def __call__(self, event):
        self.n_events += 1
        return self.n_events >= self.n


def test_callbacks_receive_events_and_change_nothing(kind, quick, rows):
    events = []
    watched = kind(**quick).fit(*rows, callbacks=[events.append])
    assert events
    for event in events:
        assert isinstance(event, Event)
        assert 0 <= event.done <= event.total
        assert event.snapshot is None
        assert event.stage in repr(event)
    assert not watched.training_["is_stopped"]
    np.testing.assert_array_equal(summary(watched, rows[0]), summary(kind(**quick).fit(*rows), rows[0]))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_callback_that_returns_true_stops_the_fit_and_keeps_the_model(kind, quick, rows, share):
    count = StopAt(np.inf)
    kind(**quick, n_jobs=1).fit(*rows, callbacks=[count])
    n = max(1, round(share * count.n_events))
    stop = StopAt(n)
    if share < 1:
        with pytest.warns(UserWarning, match="a callback stopped the fit before its end: the best model so far"):
            model = kind(**quick, n_jobs=1).fit(*rows, callbacks=[stop])
        assert model.training_["is_stopped"]
        assert stop.n_events == n
    else:
        # the last event may come when the model is complete
        model = kind(**quick, n_jobs=1).fit(*rows, callbacks=[stop])
    assert np.isfinite(summary(model, rows[0])).all()


def test_a_stopped_model_can_be_saved(kind, quick, rows, tmp_path):
    with pytest.warns(UserWarning, match="stopped"):
        model = kind(**quick).fit(*rows, callbacks=[lambda event: True])
    model.save(tmp_path / "model.softwood")
    again = softwood.load(tmp_path / "model.softwood")
    assert again.training_["is_stopped"]
    np.testing.assert_array_equal(summary(again, rows[0]), summary(model, rows[0]))


def test_time_limit_stops_the_fit_and_keeps_the_model(kind, quick, rows):
    with pytest.warns(UserWarning, match="time_limit=1e-09 stopped the fit before its end"):
        model = kind(**quick).fit(*rows, time_limit=1e-9)
    assert model.training_["is_stopped"]
    assert np.isfinite(summary(model, rows[0])).all()


def test_a_time_limit_that_is_not_reached_changes_nothing(kind, quick, rows):
    limited = kind(**quick).fit(*rows, time_limit=3600)
    assert not limited.training_["is_stopped"]
    np.testing.assert_array_equal(summary(limited, rows[0]), summary(kind(**quick).fit(*rows), rows[0]))


def fail(event):
    raise LookupError("on purpose")


def test_an_exception_of_a_callback_leaves_the_estimator_as_it_was(kind, quick, rows):
    X, y = rows
    model = kind(**quick)
    before = dict(vars(model))
    with pytest.raises(LookupError, match="on purpose"):
        model.fit(X, y, callbacks=[fail])
    assert vars(model) == before

    model.fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    before, predictions = dict(vars(model)), summary(model, X)
    other = y + 1 if is_regressor(model) else np.where(y == "low", "small", "large")
    with pytest.raises(LookupError, match="on purpose"):
        model.fit(X[:, :2], other, callbacks=[fail])
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(summary(model, X), predictions)


def test_unusable_data_leave_the_estimator_as_it_was(kind, quick, rows):
    X, y = rows
    model = kind(**quick).fit(X, y)
    before = dict(vars(model))
    for features, target in ((X[:, :2], y[:-1]), (pd.DataFrame({"a": X[:, 0]}), np.repeat(y[:1], len(y)))):
        with pytest.raises(ValueError, match=r"inconsistent|equal|class"):
            model.fit(features, target)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())


def test_an_array_replaces_the_names_of_a_former_table(kind, quick, rows):
    X, y = rows
    model = kind(**quick).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    assert not hasattr(model.fit(X, y), "feature_names_in_")


@pytest.fixture(params=RESUMABLE)
def resumable(request, quick_of):
    return REGISTRY[request.param, "regression"](**quick_of(request.param))


def length(model):
    """Name the parameter that sets how long a model is trained."""
    # the number of trees of a sum of `vart` is fixed once it is fitted
    has_trees = "n_estimators" in model.get_params() and model._family != "vart"
    return "n_estimators" if has_trees else "n_epochs"


def test_resume_has_callbacks_and_time_limit(resumable, regression):
    X, y = regression
    model = resumable.fit(X, y)
    events, predictions, name = [], summary(model, X), length(model)
    with pytest.raises(LookupError, match="on purpose"):
        model.resume(X, y, **{name: 7}, callbacks=[fail])
    assert model.get_params()[name] != 7
    np.testing.assert_array_equal(summary(model, X), predictions)
    model.resume(X, y, **{name: 7}, callbacks=[events.append])
    assert events
    assert model.get_params()[name] == 7
    assert (summary(model, X) != predictions).any()
    with pytest.warns(UserWarning, match="time_limit=1e-09 stopped"):
        model.resume(X, y, **{name: 30}, time_limit=1e-9)
    assert model.training_["is_stopped"]
    assert np.isfinite(summary(model, X)).all()


def test_a_stopped_model_can_be_trained_further(resumable, regression):
    X, y = regression
    with pytest.warns(UserWarning, match="stopped"):
        model = resumable.fit(X, y, callbacks=[lambda event: True])
    stopped = summary(model, X)
    model.resume(X, y, **{length(model): 10})
    assert not model.training_["is_stopped"]
    assert (summary(model, X) != stopped).any()


class Snapshots:
    """A callback that keeps every snapshot."""

    def __init__(self):
        self.found = []

    def wants_snapshot(self, event):
        return event.done % 2 == 0

    def __call__(self, event):
        assert event.snapshot is None or event.done % 2 == 0
        if event.snapshot is not None:
            self.found.append(event.snapshot)


@pytest.mark.parametrize("family", ["sgb", "sglb"])
def test_snapshots_are_fitted_estimators(kind, quick, rows):
    X, y = rows
    keep = Snapshots()
    model = kind(**quick).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y, callbacks=[keep])
    assert len(keep.found) > 2
    for snapshot in (keep.found[0], keep.found[-1]):
        assert type(snapshot) is kind
        assert snapshot.get_params() == model.get_params()
        assert snapshot.feature_names_in_.tolist() == ["a", "b", "c"]
        assert np.isfinite(summary(snapshot, pd.DataFrame(X, columns=["a", "b", "c"]))).all()


def test_checkpoints_are_model_files(regression, tmp_path):
    X, y = regression
    params = {"n_estimators": 20, "n_members": 1, "max_depth": 2, "learning_rate": 0.1, "random_state": 0}
    path = tmp_path / "checkpoint.softwood"
    SGBRegressor(**params).fit(X, y, callbacks=[Checkpoint(path, every=3600)])
    assert not path.exists()
    with pytest.raises(LookupError):
        SGBRegressor(**params).fit(X, y, callbacks=[Checkpoint(path, every=0), fail_late])
    assert np.isfinite(softwood.load(path).predict(X)).all()
    with pytest.raises(FileNotFoundError):
        SGBRegressor(**params).fit(X, y, callbacks=[Checkpoint(tmp_path / "no" / "folder.softwood", every=0)])
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError, match="every = "):
            Checkpoint(path, every=wrong)


def fail_late(event):
    if event.snapshot is not None and event.tree > 5:
        raise LookupError("on purpose")


def test_callbacks_run_one_at_a_time(classification):
    active, found = [], []

    def slow(event):
        active.append(threading.get_ident())
        time.sleep(0.001)
        found.append(len(active))
        active.pop()

    SGLBClassifier(n_estimators=20, n_members=4, max_depth=2, learning_rate=0.1, n_jobs=2, random_state=0).fit(
        *classification, callbacks=[slow]
    )
    assert set(found) == {1}


def test_callbacks_may_predict(regression):
    X, y = regression
    X, y = np.tile(X, (10, 1)), np.tile(y, 10)  # enough rows for several threads
    losses = []

    class Loss:
        def wants_snapshot(self, event):
            return True

        def __call__(self, event):
            if event.snapshot is not None:
                losses.append(np.mean((event.snapshot.predict(X) - y) ** 2))

    SGBRegressor(n_estimators=20, n_members=2, max_depth=2, learning_rate=0.1, n_jobs=2, random_state=0).fit(
        X, y, callbacks=[Loss()]
    )
    assert min(losses) < losses[0]


def test_verbose_prints_events(kind, quick, rows, capsys):
    events, lines = [], {}
    for verbose in (0, 1, 2):
        kind(**quick, verbose=verbose).fit(*rows, callbacks=[events.append] if verbose == 2 else None)
        lines[verbose] = capsys.readouterr().out.splitlines()
    assert lines[0] == []
    assert len(lines[2]) == len(events)
    assert len({event.stage for event in events}) <= len(lines[1]) <= len(lines[2])
    assert f"{events[0].stage} {events[0].done} of {events[0].total}" in lines[2][0]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"callbacks": print}, TypeError, "callbacks is a builtin_function_or_method: expected a list of callables"),
        ({"callbacks": [None]}, TypeError, r"callbacks\[0\] is a NoneType: expected a callable"),
        ({"time_limit": "1 h"}, TypeError, "time_limit is a str: expected a number of seconds"),
        ({"time_limit": 0}, ValueError, "time_limit = 0: expected a positive number of seconds"),
        ({"time_limit": float("nan")}, ValueError, "time_limit = NaN: expected a positive number of seconds"),
    ],
)
def test_bad_arguments_are_rejected(regression, given, error, message):
    with pytest.raises(error, match=message):
        SGBRegressor().fit(*regression, **given)


@pytest.mark.parametrize("verbose", [-1, "much", 0.5, None])
def test_bad_values_of_verbose_are_rejected(regression, verbose):
    with pytest.raises(ValueError, match="verbose = "):
        SGBRegressor(verbose=verbose).fit(*regression)
