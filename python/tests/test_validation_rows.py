"""Validation rows: `X_val` and `y_val`, or `eval_set`."""

import numpy as np
import pandas as pd
import pytest

from softwood import SGBRegressor, SGLBClassifier, SGLBRegressor

QUICK = {"n_estimators": 40, "n_members": 2, "random_state": 0}


@pytest.fixture
def parts(regression):
    X, y = regression
    return (X[:80], y[:80]), (X[80:], y[80:])


def test_eval_set_equals_x_val_and_y_val(parts, regressor):
    train, (X_val, y_val) = parts
    expected = regressor().fit(*train, X_val=X_val, y_val=y_val).predict(X_val)
    for eval_set in ([(X_val, y_val)], (X_val, y_val), ((X_val, y_val),), [(X_val.tolist(), y_val.tolist())]):
        np.testing.assert_array_equal(regressor().fit(*train, eval_set=eval_set).predict(X_val), expected)


def test_eval_set_stops_a_fit_early(parts):
    train, (X_val, y_val) = parts
    params = {"n_members": 1, "learning_rate": 0.3, "max_depth": 3, "early_stopping_rounds": 5, "random_state": 0}
    # validation targets that contradict the training rows: every tree makes the score worse
    model = SGBRegressor(n_estimators=200, **params).fit(*train, eval_set=[(X_val, -y_val)])
    other = SGBRegressor(n_estimators=200, **params).fit(*train, eval_set=[(X_val, y_val)])
    assert np.std(model.predict(X_val)) < np.std(other.predict(X_val))


def test_resume_accepts_eval_set(parts):
    train, (X_val, y_val) = parts
    model = SGLBRegressor(**QUICK, max_depth=2, learning_rate=0.1)
    one = model.fit(*train).resume(*train, X_val=X_val, y_val=y_val).predict(X_val)
    two = model.fit(*train).resume(*train, eval_set=[(X_val, y_val)]).predict(X_val)
    np.testing.assert_array_equal(one, two)


def test_eval_set_accepts_tables(classification):
    X, y = classification
    X = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = SGLBClassifier(**QUICK).fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:]).predict_proba(X)
    model = SGLBClassifier(**QUICK).fit(X[:80], y[:80], eval_set=[(X[80:], y[80:])])
    np.testing.assert_array_equal(model.predict_proba(X), expected)


@pytest.mark.parametrize("method", ["fit", "resume"])
def test_ambiguous_validation_rows_are_rejected(parts, method):
    train, (X_val, y_val) = parts
    call = getattr(SGLBRegressor(**QUICK).fit(*train), method)
    pair = (X_val, y_val)
    for several in ([pair, train], (pair, train)):
        with pytest.raises(ValueError, match=r"eval_set has 2 pairs: give one pair, \[\(X_val, y_val\)\]"):
            call(*train, eval_set=several)
    for both in ({"X_val": X_val, "y_val": y_val}, {"X_val": X_val}, {"y_val": y_val}):
        with pytest.raises(ValueError, match="two ways to give validation rows: give one of them"):
            call(*train, eval_set=[pair], **both)
    for wrong in ([], (), [X_val, y_val], [X_val], (X_val, y_val, y_val), [(X_val,)], [(X_val, None)]):
        with pytest.raises(ValueError, match=r"expected \[\(X_val, y_val\)\]"):
            call(*train, eval_set=wrong)
    with pytest.raises(TypeError, match="eval_set is a ndarray: expected"):
        call(*train, eval_set=X_val)
    with pytest.raises(ValueError, match="belong together"):
        call(*train, X_val=X_val)
