"""Rows to label next and candidates to try next."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from softwood import ForestClassifier, GPRegressor
from softwood.design import select_rows, suggest

QUICK = {"max_iterations": 15, "n_restarts": 0, "n_members": 32, "random_state": 0}


@pytest.fixture(scope="module")
def gap():
    """A process without training rows between 1 and 2."""
    x = np.concatenate([np.linspace(0, 1, 25), np.linspace(2, 3, 25)])[:, None]
    return GPRegressor(**QUICK).fit(x, np.sin(3 * x[:, 0]))


@pytest.fixture(scope="module")
def pool():
    return np.linspace(0, 3, 91)[:, None]


@pytest.mark.parametrize("criterion", ["information", "variance"])
def test_rows_in_a_gap_are_chosen_first(gap, pool, criterion):
    found = select_rows(gap, pool, 3, criterion)
    assert np.all(np.abs(pool[found.rows, 0] - 1.5) < 0.5)
    assert np.all(np.diff(found.scores) <= 0)
    assert found.rows.dtype == np.int64


def test_scores_of_variance_are_knowledge_uncertainty(gap, pool):
    found = select_rows(gap, pool, 5, criterion="variance")
    np.testing.assert_allclose(found.scores, gap.predict_dist(pool).knowledge[found.rows])


def test_information_is_half_a_log_determinant(gap, pool):
    found = select_rows(gap, pool, 6)
    dist = gap.predict_dist(pool[found.rows])
    covariance = np.cov(dist.members, bias=True)
    scale = np.sqrt(np.outer(dist.data, dist.data))
    expected = 0.5 * np.linalg.slogdet(np.eye(6) + covariance / scale)[1]
    assert found.scores.sum() == pytest.approx(expected, rel=1e-9)


def test_variance_reduction_is_that_of_the_pool(gap, pool):
    found = select_rows(gap, pool, 6, "variance_reduction")
    dist = gap.predict_dist(pool)
    prior = np.cov(dist.members, bias=True)
    observed = prior[np.ix_(found.rows, found.rows)] + np.diag(dist.data[found.rows])
    posterior = prior - prior[:, found.rows] @ np.linalg.solve(observed, prior[found.rows])
    expected = np.mean(np.diag(prior) - np.diag(posterior))
    assert found.scores.sum() == pytest.approx(expected, rel=1e-6)


def test_random_rows_follow_the_seed(gap, pool):
    first = select_rows(gap, pool, 10, "random", random_state=1)
    np.testing.assert_array_equal(first.rows, select_rows(gap, pool, 10, "random", random_state=1).rows)
    assert set(first.rows) != set(select_rows(gap, pool, 10, "random", random_state=2).rows)
    assert np.all(first.scores == 0)


def test_every_estimator_chooses_rows(regression, kind, quick):
    X, y = regression
    is_regressor = kind.__name__.endswith("Regressor")
    model = kind(**quick).fit(X, y if is_regressor else y > 0)
    found = select_rows(model, X, 10)
    assert len(set(found.rows)) == 10
    label = None if is_regressor else True
    tried = suggest(model, X, 4, label=label)
    assert len(set(tried.rows)) == 4
    if is_regressor:
        np.testing.assert_allclose(tried.mean, model.predict(X)[tried.rows])
    else:
        np.testing.assert_allclose(tried.mean, model.predict_proba(X)[tried.rows, 1])


def test_columns_match_by_name(mixed, regressor):
    cells, y = mixed
    table = pd.DataFrame(cells)
    model = regressor().fit(table, y)
    first = select_rows(model, table, 5)
    second = select_rows(model, table[table.columns[::-1]].assign(extra=1), 5)
    np.testing.assert_array_equal(first.rows, second.rows)


def test_suggestions_find_the_maximum_and_the_minimum():
    candidates = np.linspace(0, 3, 121)[:, None]
    y = np.sin(4 * candidates[:, 0]) + 0.3 * candidates[:, 0]
    for maximize, best in ((True, y.max()), (False, y.min())):
        tried = [5, 60, 110]
        for step in range(12):
            model = GPRegressor(**QUICK).fit(candidates[tried], y[tried])
            found = suggest(model, candidates, maximize=maximize, exclude=tried, random_state=step)
            assert found.rows[0] not in tried
            tried.append(int(found.rows[0]))
        assert np.min(np.abs(y[tried] - best)) < 0.02


def test_excluded_rows_are_indices_or_a_mask(gap, pool):
    rows = np.arange(0, 90)
    mask = np.isin(np.arange(91), rows)
    for exclude in (rows, mask, list(rows)):
        assert suggest(gap, pool, exclude=exclude).rows.tolist() == [90]
    assert suggest(gap, pool, exclude=[]).rows.tolist() == suggest(gap, pool).rows.tolist()


def test_expected_improvement_takes_the_best_value_so_far(gap, pool):
    members = gap.predict_dist(pool).members
    found = suggest(gap, pool, criterion="expected_improvement", best=0.9)
    improvement = np.maximum(members - 0.9, 0).mean(axis=1)
    assert improvement[found.rows[0]] == pytest.approx(improvement.max())
    # without it, the best predicted mean of the excluded rows
    exclude = np.arange(0, 30)
    best = gap.predict(pool[:30]).max()
    given = suggest(gap, pool, 3, criterion="expected_improvement", exclude=exclude, best=best)
    np.testing.assert_array_equal(
        given.rows, suggest(gap, pool, 3, criterion="expected_improvement", exclude=exclude).rows
    )


def test_labels_name_the_class_whose_probability_counts(regression):
    X, y = regression
    labels = np.where(y > 0, "high", "low")
    model = ForestClassifier(n_estimators=20, n_members=4, random_state=0).fit(X, labels)
    proba = model.predict_proba(X)
    for column, label in enumerate(model.classes_):
        found = suggest(model, X, 3, label=label)
        np.testing.assert_allclose(found.mean, proba[found.rows, column])
        assert np.all(found.mean > 0.5)
    with pytest.raises(ValueError, match="label: expected the class"):
        suggest(model, X)
    with pytest.raises(ValueError, match="'none' is not a class"):
        suggest(model, X, label="none")


def test_bad_arguments_are_rejected(gap, pool):
    for arguments, error, message in (
        ({"n": 92}, ValueError, "n = 92: there are 91 rows in the pool"),
        ({"n": -1}, ValueError, "n = -1"),
        ({"n": "three"}, TypeError, "n is a str"),
        ({"n": 1, "criterion": "variances"}, ValueError, "did you mean `variance`"),
        ({"n": 1, "criterion": None}, TypeError, "criterion is a NoneType"),
    ):
        with pytest.raises(error, match=message):
            select_rows(gap, pool, **arguments)
    for arguments, message in (
        ({"n": 2, "exclude": np.arange(90)}, "there are 1 candidates that are not excluded"),
        ({"exclude": [91]}, "expected row indices from 0 to 90"),
        ({"exclude": [True, False]}, "found a mask of shape"),
        ({"exclude": [0.5]}, "expected row indices"),
        ({"label": 1}, "the model is a regressor"),
        ({"criterion": "expected_improvement"}, "give `best`"),
        ({"criterion": "ucb"}, "expected one of thompson, expected_improvement"),
    ):
        with pytest.raises(ValueError, match=message):
            suggest(gap, pool, **arguments)
    with pytest.raises(NotFittedError):
        select_rows(GPRegressor(), pool, 1)
    with pytest.raises(TypeError, match="expected a fitted estimator"):
        suggest("gp", pool)
