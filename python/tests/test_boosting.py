"""Boosted models: monotonic constraints, class weights, and the warning about members that are too similar."""

import warnings

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from softwood import SGBClassifier, SGBRegressor, SGLBClassifier, SGLBRegressor, load

QUICK = {"n_estimators": 30, "n_members": 4, "max_depth": 3, "learning_rate": 0.1, "random_state": 0}
CLASSIFIERS = [SGBClassifier, SGLBClassifier]
REGRESSORS = [SGBRegressor, SGLBRegressor]


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1], (X[:, 0] + rng.normal(size=200) > 1).astype(int)


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("labels", [[0, 1], [0.0, 2.0], [False, True], ["no", "yes"]])
def test_class_weights_equal_row_weights(kind, labels, rows):
    X, _, y = rows
    y = np.array(labels)[y]
    weights = dict(zip(labels, [0.5, 4], strict=True))
    ours = kind(**QUICK, class_weight=weights).fit(X, y)
    theirs = kind(**QUICK).fit(X, y, sample_weight=[weights[label] for label in y.tolist()])
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    balanced = kind(**QUICK, class_weight="balanced").fit(X, y)
    by_hand = dict(zip(labels, compute_class_weight("balanced", classes=np.unique(y), y=y), strict=True))
    theirs = kind(**QUICK, class_weight=by_hand).fit(X, y)
    np.testing.assert_array_equal(balanced.predict_proba(X), theirs.predict_proba(X))


def test_only_classifiers_have_class_weights(rows):
    X, _, y = rows
    assert "class_weight" not in SGBRegressor().get_params()
    with pytest.raises(ValueError, match="`7` is not a class of the target; there are 0, 1"):
        SGBClassifier(**QUICK, class_weight={7: 2}).fit(X, y)
    with pytest.raises(ValueError, match="balanced"):
        SGBClassifier(**QUICK, class_weight="even").fit(X, y)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_monotonic_constraints_hold(kind, rows):
    X, y, _ = rows
    model = kind(**QUICK, monotonic_cst={"x0": 1, "x1": np.int64(-1)}).fit(X, y)
    grid = np.tile(X[:1], (50, 1))
    grid[:, 0] = np.linspace(-3, 3, 50)
    assert (np.diff(model.predict(grid)) >= 0).all()
    with pytest.raises(ValueError, match="no column `x9`; there are x0, x1, x2"):
        kind(**QUICK, monotonic_cst={"x9": 1}).fit(X, y)
    with pytest.raises(ValueError, match=r"`x0` has 2; expected \+1"):
        kind(**QUICK, monotonic_cst={"x0": 2}).fit(X, y)


def test_files_keep_constraints_and_class_weights(rows, tmp_path):
    X, y, z = rows
    model = SGLBRegressor(**QUICK, monotonic_cst={"x0": 1}).fit(X, y)
    model.save(tmp_path / "a.softwood")
    assert load(tmp_path / "a.softwood").monotonic_cst == {"x0": 1}
    model = SGLBClassifier(**QUICK, class_weight={0: 1, 1: 3}).fit(X, z)
    model.save(tmp_path / "b.softwood")
    again = load(tmp_path / "b.softwood")
    assert again.class_weight == {"0": 1, "1": 3}
    np.testing.assert_array_equal(again.set_params(random_state=0).fit(X, z).predict_proba(X), model.predict_proba(X))


def test_a_fit_warns_of_members_that_are_too_similar(rows):
    X, y, _ = rows
    with pytest.warns(UserWarning, match="independent"):
        SGLBRegressor(**{**QUICK, "n_members": 10}, virtual_ensemble=True).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SGLBRegressor(**QUICK).fit(X, y)
    members = model.training_["members"]
    assert members["effective"] == pytest.approx(4)
    assert members["warning"] is None
