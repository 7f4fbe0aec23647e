"""The interface of scikit-learn: its own checks, and conventions beyond them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from softwood._base import REGISTRY


@parametrize_with_checks([kind() for kind in REGISTRY.values()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_scikit_learn_knows_regressors_and_classifiers(regressor, classifier):
    assert is_regressor(regressor())
    assert is_classifier(classifier())


def test_clone_keeps_parameters_and_drops_the_fit(regression, regressor):
    model = regressor().fit(*regression)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert not hasattr(twin, "n_features_in_")


def test_same_seed_same_predictions_on_any_number_of_threads(regression, regressor):
    X, y = regression
    one = regressor(n_jobs=1).fit(X, y).predict_dist(X)
    two = regressor(n_jobs=2).fit(X, y).predict_dist(X)
    np.testing.assert_array_equal(one.mean, two.mean)
    np.testing.assert_array_equal(one.knowledge, two.knowledge)


@pytest.mark.parametrize("seed", [None, 7, np.int64(7), np.random.RandomState(7), np.random.default_rng(7)])
def test_every_kind_of_random_state_is_accepted(regression, regressor, seed):
    assert np.isfinite(regressor(random_state=seed).fit(*regression).predict(regression[0])).all()


def test_pipelines_searches_and_cross_validation(regression, classification, regressor, classifier):
    X, y = regression
    pipeline = make_pipeline(StandardScaler(), regressor())
    name = f"{pipeline.steps[-1][0]}__n_members"
    search = GridSearchCV(pipeline, {name: [2, 3]}, cv=2).fit(X, y)
    assert search.best_params_[name] in {2, 3}
    X, y = classification
    proba = cross_val_predict(classifier(), X, y, cv=2, method="predict_proba")
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_regressors_predict_standard_deviations_quantiles_and_intervals(regression, regressor):
    X, y = regression
    model = regressor().fit(X, y)
    dist = model.predict_dist(X)
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, dist.mean)
    np.testing.assert_array_equal(std, dist.std)
    np.testing.assert_array_equal(model.predict(X, quantiles=[0.1, 0.9]), dist.quantile([0.1, 0.9]))
    np.testing.assert_array_equal(model.predict(X, quantiles=0.5), dist.quantile(0.5))
    np.testing.assert_array_equal(model.predict_quantiles(X, [0.1, 0.9]), dist.quantile([0.1, 0.9]))
    np.testing.assert_array_equal(model.predict_interval(X), dist.interval(0.9))
    np.testing.assert_array_equal(model.predict_interval(X, 0.5), dist.interval(0.5))
    with pytest.raises(ValueError, match="give one of them"):
        model.predict(X, return_std=True, quantiles=[0.5])
    for level in (-0.1, 1.5):
        with pytest.raises(ValueError, match="level"):
            model.predict_interval(X, level)


def test_pipelines_predict_standard_deviations_and_quantiles(regression, regressor):
    X, y = regression
    pipeline = make_pipeline(StandardScaler(), regressor()).fit(X, y)
    mean, std = pipeline.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, pipeline.predict(X))
    assert (std > 0).all()
    assert pipeline.predict(X, quantiles=[0.1, 0.9]).shape == (len(y), 2)


def test_classes_keep_their_type(classification, classifier):
    X, _ = classification
    for y in (X[:, 0] > 0, (X[:, 0] > 0).astype(int) * 3, np.where(X[:, 0] > 0, "b", "a")):
        model = classifier().fit(X, y)
        np.testing.assert_array_equal(model.classes_, np.unique(y))
        assert model.predict(X).dtype == y.dtype
        assert model.predict_proba(X).shape == (len(X), 2)


def test_validation_rows_need_features_and_targets(regression, regressor):
    X, y = regression
    model = regressor().fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:])
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(ValueError, match="belong together"):
        regressor().fit(X, y, X_val=X)


def test_validation_classes_must_be_classes_of_the_training_rows(classification, classifier):
    X, y = classification
    with pytest.raises(ValueError, match="`huge` is not a class of the model"):
        classifier().fit(X, y, X_val=X[:2], y_val=["low", "huge"])


def test_weights_equal_repetition_and_row_order_does_not_matter(mixed, quick, kind):
    cells, y = mixed
    X = pd.DataFrame(cells)
    y = y if is_regressor(kind()) else y > 4
    rng = np.random.default_rng(3)
    weights, order = rng.integers(0, 4, size=len(y)), rng.permutation(len(y))
    repeated = kind(**quick).fit(X.loc[X.index.repeat(weights)], y.repeat(weights)).predict_dist(X)
    weighted = kind(**quick).fit(X.iloc[order], y[order], sample_weight=weights[order]).predict_dist(X)
    np.testing.assert_allclose(weighted.total, repeated.total, rtol=1e-7)
    np.testing.assert_allclose(weighted.knowledge, repeated.knowledge, rtol=1e-7)


def test_a_fitted_model_has_a_training_report(regression, regressor):
    report = regressor().fit(*regression).training_
    assert {"curve", "trials", "chosen", "is_stopped"} <= set(report)
