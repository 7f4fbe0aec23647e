"""Trees against scikit-learn: equal splits if bins are exact, equal pruning, forests of similar accuracy."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from softwood import ForestClassifier, ForestRegressor, TreeClassifier, TreeRegressor


@pytest.fixture(scope="module")
def table():
    """Columns have few distinct values, so that bins are exact; no two splits have equal gains."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 12, size=(600, 4)).astype(float)
    y = (X[:, 0] - 5) * (X[:, 1] > 6) + np.sqrt(X[:, 2]) + rng.normal(scale=0.7, size=600)
    return X, y


@pytest.mark.parametrize("depth", [1, 3, 6])
def test_a_regression_tree_equals_that_of_scikit_learn(table, depth):
    """Both trees have the same rows in each leaf, so that predictions are equal up to rounding."""
    X, y = table
    ours = TreeRegressor(max_depth=depth, min_child_weight=5, ccp_alpha=0, random_state=0).fit(X, y)
    theirs = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=5, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)


def test_pruning_equals_that_of_scikit_learn(table):
    """Our `ccp_alpha` is a fraction of the loss of the root; that of scikit-learn is in squared units of the target."""
    X, y = table
    path = DecisionTreeRegressor(max_depth=5, min_samples_leaf=5, random_state=0).cost_complexity_pruning_path(X, y)
    between = np.sqrt(path.ccp_alphas[1:-1] * path.ccp_alphas[2:])
    assert len(between) > 10
    for alpha in between[:: len(between) // 5]:
        shape = {"max_depth": 5, "random_state": 0}
        theirs = DecisionTreeRegressor(min_samples_leaf=5, ccp_alpha=alpha, **shape).fit(X, y)
        ours = TreeRegressor(min_child_weight=5, ccp_alpha=alpha / y.var(), **shape).fit(X, y)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)


def test_a_classification_tree_equals_that_of_scikit_learn(table):
    X, y = table
    labels = np.digitize(y, [-1, 2])
    ours = TreeClassifier(max_depth=4, min_child_weight=10, ccp_alpha=0, extrapolation=False, random_state=0)
    ours.fit(X, labels)
    theirs = DecisionTreeClassifier(max_depth=4, min_samples_leaf=10, random_state=0).fit(X, labels)
    # our probabilities are smoothed, so that only the partition of the rows is compared
    leaves = {tuple(np.round(row, 9)) for row in np.c_[theirs.apply(X), ours.predict_proba(X)[:, 0]]}
    assert len(leaves) == theirs.get_n_leaves()


def test_forests_are_about_as_accurate(table):
    """Bootstrap samples and bins differ: errors on test rows agree within ten percent."""
    X, y = table
    train, test = slice(0, 400), slice(400, None)
    ours = ForestRegressor(random_state=0).fit(X[train], y[train]).predict(X[test])
    theirs = RandomForestRegressor(200, random_state=0).fit(X[train], y[train]).predict(X[test])
    error = [np.sqrt(np.mean((mean - y[test]) ** 2)) for mean in (ours, theirs)]
    assert error[0] < 1.1 * error[1], error
    labels = np.digitize(y, [-1, 2])
    ours = ForestClassifier(random_state=0).fit(X[train], labels[train])
    theirs = RandomForestClassifier(200, random_state=0).fit(X[train], labels[train])
    right = [model.score(X[test], labels[test]) for model in (ours, theirs)]
    assert right[0] > right[1] - 0.05, right
