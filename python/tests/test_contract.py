"""scikit-learn's own checks, and what it expects of estimators beyond them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from softwood import VSTClassifier, VSTRegressor


@parametrize_with_checks([VSTRegressor(), VSTClassifier()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_kinds_are_told_apart():
    assert is_regressor(VSTRegressor())
    assert is_classifier(VSTClassifier())


def test_clone_keeps_parameters_and_drops_the_fit(regression, quick):
    model = VSTRegressor(**quick).fit(*regression)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "n_features_in_")


def test_same_seed_same_predictions_on_any_number_of_threads(regression, quick):
    X, y = regression
    one = VSTRegressor(**quick, n_jobs=1).fit(X, y).predict_dist(X)
    two = VSTRegressor(**quick, n_jobs=2).fit(X, y).predict_dist(X)
    np.testing.assert_array_equal(one.mean, two.mean)
    np.testing.assert_array_equal(one.knowledge, two.knowledge)


@pytest.mark.parametrize("seed", [None, 7, np.int64(7), np.random.RandomState(7), np.random.default_rng(7)])
def test_every_kind_of_random_state_is_taken(regression, quick, seed):
    quick["random_state"] = seed
    assert np.isfinite(VSTRegressor(**quick).fit(*regression).predict(regression[0])).all()


def test_pipelines_searches_and_cross_validation(regression, classification, quick):
    X, y = regression
    pipeline = make_pipeline(StandardScaler(), VSTRegressor(**quick))
    search = GridSearchCV(pipeline, {"vstregressor__depth": [0, 1]}, cv=2).fit(X, y)
    assert search.best_params_["vstregressor__depth"] in {0, 1}
    X, y = classification
    proba = cross_val_predict(VSTClassifier(**quick), X, y, cv=2, method="predict_proba")
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_classes_keep_their_type(classification, quick):
    X, _ = classification
    for y in (X[:, 0] > 0, (X[:, 0] > 0).astype(int) * 3, np.where(X[:, 0] > 0, "b", "a")):
        model = VSTClassifier(**quick).fit(X, y)
        np.testing.assert_array_equal(model.classes_, np.unique(y))
        assert model.predict(X).dtype == y.dtype
        assert model.predict_proba(X).shape == (len(X), 2)


def test_held_out_rows_are_used_and_need_their_target(regression, quick):
    X, y = regression
    model = VSTRegressor(**quick).fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:])
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(ValueError, match="belong together"):
        VSTRegressor(**quick).fit(X, y, X_val=X)


def test_held_out_class_must_be_known(classification, quick):
    X, y = classification
    with pytest.raises(ValueError, match="`huge` is not a class of the model"):
        VSTClassifier(**quick).fit(X, y, X_val=X[:2], y_val=["low", "huge"])


@pytest.mark.parametrize("kind", [VSTRegressor, VSTClassifier])
def test_weights_are_repetition_and_rows_have_no_order(mixed, quick, kind):
    cells, y = mixed
    X = pd.DataFrame(cells)
    y = y if kind is VSTRegressor else y > 4
    rng = np.random.default_rng(3)
    weights, order = rng.integers(0, 4, size=len(y)), rng.permutation(len(y))
    repeated = kind(**quick).fit(X.loc[X.index.repeat(weights)], y.repeat(weights)).predict_dist(X)
    weighted = kind(**quick).fit(X.iloc[order], y[order], sample_weight=weights[order]).predict_dist(X)
    np.testing.assert_allclose(weighted.total, repeated.total, rtol=1e-7)
    np.testing.assert_allclose(weighted.knowledge, repeated.knowledge, rtol=1e-7)


def test_training_report_is_there(regression, quick):
    report = VSTRegressor(**quick).fit(*regression).training_
    assert {"curve", "trials", "chosen"} <= set(report)
