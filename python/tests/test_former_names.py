"""Former names of parameters and of choice values: accepted with a warning that gives the current name."""

import inspect
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softwood import SGBRegressor, SGLBRegressor, VSGBMRegressor, VSTRegressor, load
from softwood._base import REGISTRY


@pytest.fixture
def strict():
    """Turn a FutureWarning into an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        yield


def warns(former, current):
    return pytest.warns(FutureWarning, match=re.escape(f"`{former}`") + ".* is now called " + re.escape(f"`{current}`"))


def test_signatures_have_only_current_names(kind):
    names = list(inspect.signature(kind.__init__).parameters)
    assert names[0] == "self"
    assert names[-3:] == ["random_state", "n_jobs", "verbose"]
    assert list(inspect.signature(kind).parameters) == names[1:]
    assert sorted(kind().get_params()) == sorted(names[1:])
    # a former name that is the current name of another parameter would be ambiguous
    assert not set(kind._former_names) & set(names)
    assert set(kind._former_names.values()) <= set(names)


def test_constructors_accept_former_names(kind):
    for former, current in kind._former_names.items():
        with warns(former, current) as caught:
            model = kind(**{former: 1})
        assert model.get_params() == kind(**{current: 1}).get_params()
        assert not hasattr(model, former)
        assert [warning.filename for warning in caught] == [__file__]


def test_set_params_accepts_former_names(kind):
    for former, current in kind._former_names.items():
        with warns(former, current) as caught:
            model = kind().set_params(**{former: 1})
        assert model.get_params()[current] == 1
        assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_parameter_by_both_names_is_rejected():
    for params in ({"depth": 1, "max_depth": 2}, {"max_depth": 2, "depth": 1}):
        for accept in (VSTRegressor, VSTRegressor().set_params):
            with pytest.raises(TypeError, match="VSTRegressor got `max_depth` twice"):
                accept(**params)


def test_unknown_names_are_rejected(kind):
    with pytest.raises(TypeError, match="unexpected keyword argument 'no_such_thing'"):
        kind(no_such_thing=1)
    with pytest.raises(ValueError, match="Invalid parameter 'no_such_thing'"):
        kind().set_params(no_such_thing=1)


@pytest.mark.usefixtures("strict")
def test_current_names_do_not_warn(regression, regressor, tmp_path):
    X, y = regression
    model = clone(regressor()).fit(X, y)
    model.save(tmp_path / "model.softwood")
    again = load(tmp_path / "model.softwood")
    again.set_params(**model.get_params()).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_former_names_give_the_same_model(regression):
    X, y = regression
    with warns("virtual", "virtual_ensemble"):
        former = SGLBRegressor(n_estimators=20, max_depth=2, learning_rate=0.1, virtual=True, random_state=0)
    current = SGLBRegressor(n_estimators=20, max_depth=2, learning_rate=0.1, virtual_ensemble=True, random_state=0)
    np.testing.assert_array_equal(former.fit(X, y).predict(X), current.fit(X, y).predict(X))


def test_searches_and_pipelines_accept_former_names(regression):
    X, y = regression
    pipeline = make_pipeline(StandardScaler(), VSTRegressor(n_epochs=2, n_members=2, n_fits=1, random_state=0))
    with warns("depth", "max_depth"):
        search = GridSearchCV(pipeline, {"vstregressor__depth": [0, 1]}, cv=2).fit(X, y)
    assert search.best_estimator_[-1].max_depth in {0, 1}


def test_resume_accepts_former_names_and_restores_them_on_failure(regression):
    X, y = regression
    model = VSGBMRegressor(n_estimators=1, max_depth=0, n_epochs=2, n_fits=1, n_members=2, random_state=0).fit(X, y)
    with warns("n_trees", "n_estimators"):
        model.resume(X, y, n_trees=2)
    assert model.n_estimators == 2
    before = model.get_params()
    with warns("joint", "joint_training"), pytest.raises(ValueError, match="rank"):
        model.resume(X, y, joint=False, rank=-1)
    assert model.get_params() == before


@pytest.mark.parametrize(
    ("model", "former", "current"),
    [
        (VSTRegressor(max_depth=0, n_epochs=2, n_fits=1, n_members=2), {"prior": "kind"}, {"prior": "group"}),
        (SGBRegressor(n_estimators=3, n_members=1), {"noise": "squared"}, {"noise": "constant"}),
        (SGBRegressor(n_estimators=3, n_members=1), {"noise": "normal"}, {"noise": "varying"}),
    ],
)
def test_former_values_warn_in_fit(regression, model, former, current):
    X, y = regression
    ((old,), (new,)) = former.values(), current.values()
    with warns(old, new) as caught:
        theirs = clone(model).set_params(**former, random_state=0).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    # as scikit-learn demands, fit does not change a parameter
    assert theirs.get_params().items() >= former.items()
    ours = clone(model).set_params(**current, random_state=0).fit(X, y)
    np.testing.assert_array_equal(theirs.predict(X), ours.predict(X))


def test_a_file_has_current_values(regression, tmp_path):
    X, y = regression
    with warns("squared", "constant"):
        model = SGBRegressor(n_estimators=3, n_members=1, noise="squared").fit(X, y)
    model.save(tmp_path / "model.softwood")
    assert load(tmp_path / "model.softwood").noise == "constant"


def test_a_subclass_may_have_a_parameter_with_a_former_name():
    class Shallow(VSTRegressor):
        def __init__(self, depth=1):
            super().__init__(max_depth=depth)
            self.depth = depth

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Shallow(2).set_params(depth=3).depth == 3
    assert REGISTRY["vst", "regression"] is VSTRegressor
