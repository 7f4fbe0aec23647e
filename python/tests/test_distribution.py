"""The predictive distribution: shapes, and identities between its quantities."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def dist(regression, regressor):
    X, y = regression
    return regressor().fit(X, y).predict_dist(X)


@pytest.fixture
def labels(classification, classifier):
    X, y = classification
    return classifier().fit(X, y).predict_dist(X)


def test_shapes(dist, regression):
    n = len(regression[1])
    assert len(dist) == n
    for values in (dist.mean, dist.std, dist.total, dist.data, dist.knowledge, dist.quantile(0.5)):
        assert values.shape == (n,)
    assert dist.quantile([0.1, 0.5, 0.9]).shape == (n, 3)
    assert dist.interval(0.8).shape == (n, 2)
    assert dist.sample(5).shape == (n, 5)
    assert dist.sample_functions(3).shape == (n, 3)


def test_variance_adds_up(dist):
    np.testing.assert_allclose(dist.total, dist.data + dist.knowledge)
    np.testing.assert_allclose(dist.std**2, dist.total)
    assert (dist.knowledge >= 0).all()


def test_mean_equals_predict(regression, regressor):
    X, y = regression
    model = regressor().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), model.predict_dist(X).mean)


def test_cdf_inverts_quantile(dist):
    for level in (0.01, 0.3, 0.5, 0.99):
        np.testing.assert_allclose(dist.cdf(dist.quantile(level)), level, atol=1e-5)


def test_interval_is_a_pair_of_quantiles(dist):
    np.testing.assert_allclose(dist.interval(0.9), dist.quantile([0.05, 0.95]))


def test_density_integrates_to_one(dist):
    grid = np.linspace(dist.mean.min() - 12 * dist.std.max(), dist.mean.max() + 12 * dist.std.max(), 4001)
    mass = sum(dist.pdf(value) for value in grid) * (grid[1] - grid[0])
    np.testing.assert_allclose(mass, 1, rtol=1e-3)


def test_crps_is_smallest_near_the_middle(dist):
    assert (dist.crps(dist.mean) < dist.crps(dist.mean + 5 * dist.std)).all()


def test_one_target_for_all_rows_or_one_for_each(dist):
    np.testing.assert_array_equal(dist.logpdf(0.5), dist.logpdf(np.full(len(dist), 0.5)))
    for wrong in (np.zeros(len(dist) + 1), np.zeros((len(dist), 1)), []):
        with pytest.raises(ValueError, match=r"y has shape .* one for each of the 120 rows"):
            dist.cdf(wrong)


@pytest.mark.parametrize("level", [-0.1, 1.5, np.nan])
def test_levels_outside_the_unit_interval_are_rejected(dist, level):
    with pytest.raises(ValueError, match="level"):
        dist.quantile(level)


def test_samples_repeat_with_their_seed_and_have_the_predictive_mean(dist):
    np.testing.assert_array_equal(dist.sample(4, random_state=1), dist.sample(4, random_state=1))
    assert (dist.sample(4, random_state=1) != dist.sample(4, random_state=2)).any()
    # 120 rows x 500 draws: the pooled standardised mean has sd 1/sqrt(60000) = 0.0041; 0.03 is beyond 7 sd
    z = (dist.sample(500, random_state=3) - dist.mean[:, None]) / dist.std[:, None]
    assert abs(z.mean()) < 0.03


def test_sampled_functions_have_the_predictive_mean(dist):
    functions = dist.sample_functions(8, random_state=0)
    np.testing.assert_allclose(functions.mean(axis=1), dist.mean, atol=1e-6 * dist.std.max())


def test_members_have_the_mean_and_the_knowledge_variance(dist):
    assert dist.members.shape[0] == len(dist)
    np.testing.assert_allclose(dist.members.mean(axis=1), dist.mean, rtol=1e-9, atol=1e-9 * dist.std.max())
    np.testing.assert_allclose(dist.members.var(axis=1), dist.knowledge, rtol=1e-6, atol=1e-9 * dist.total.max())


def test_members_of_classifiers_have_the_mean_probabilities(labels):
    members = labels.members
    assert (members.shape[0], members.shape[2]) == (len(labels), len(labels.classes))
    np.testing.assert_allclose(members.sum(axis=2), 1, rtol=1e-6)  # soft trees compute in 32 bits
    np.testing.assert_allclose(members.mean(axis=1), labels.proba, atol=1e-9)


def test_sampled_functions_of_classifiers_are_members(labels):
    functions = labels.sample_functions(5, random_state=0)
    assert functions.shape == (len(labels), 5, len(labels.classes))
    np.testing.assert_array_equal(functions, labels.sample_functions(5, random_state=0))
    for at in range(5):
        gaps = np.abs(labels.members - functions[:, [at]]).max(axis=(0, 2))
        assert gaps.min() < 1e-12


def test_contrast_is_the_difference_of_the_members(regression, regressor):
    X, y = regression
    model = regressor().fit(X, y)
    one, two = model.predict_dist(X + np.eye(3)[0]), model.predict_dist(X)
    found = one.contrast(two, levels=[0.1, 0.5, 0.9])
    gaps = one.members - two.members
    np.testing.assert_allclose(found.mean, gaps.mean(axis=1), atol=1e-9)
    np.testing.assert_allclose(found.std, gaps.std(axis=1), atol=1e-6)
    np.testing.assert_allclose(found.quantiles, np.quantile(gaps, [0.1, 0.5, 0.9], axis=1).T, atol=1e-9)
    np.testing.assert_allclose(found.member_means, gaps.mean(axis=0), atol=1e-9)
    np.testing.assert_array_equal(found.levels, [0.1, 0.5, 0.9])
    np.testing.assert_array_equal(one.contrast(pickle.loads(pickle.dumps(two))).mean, found.mean)


def test_contrast_of_classifiers_has_one_column_for_each_class(classification, classifier):
    X, y = classification
    model = classifier().fit(X, y)
    one, two = model.predict_dist(X + np.eye(3)[0]), model.predict_dist(X)
    found = one.contrast(two)
    gaps = one.members - two.members
    n_rows, n_members, n_classes = gaps.shape
    assert found.quantiles.shape == (n_rows, n_classes, 2)
    assert found.member_means.shape == (n_members, n_classes)
    np.testing.assert_allclose(found.mean, gaps.mean(axis=1), atol=1e-9)
    np.testing.assert_allclose(found.std, gaps.std(axis=1), atol=1e-6)
    np.testing.assert_allclose(found.quantiles, np.moveaxis(np.quantile(gaps, [0.05, 0.95], axis=1), 0, 2), atol=1e-9)


def test_contrast_needs_the_same_model_and_as_many_rows(regression, regressor, labels):
    X, y = regression
    one, other = regressor().fit(X, y).predict_dist(X), regressor().fit(X, -y).predict_dist(X)
    with pytest.raises(ValueError, match="model"):
        one.contrast(other)
    with pytest.raises(ValueError, match="rows"):
        one.contrast(regressor().fit(X, y).predict_dist(X[:7]))
    with pytest.raises(TypeError, match="expected a RegressionDistribution of the same model"):
        one.contrast(labels)
    with pytest.raises(ValueError, match="level 2"):
        one.contrast(one, levels=[2])


def test_entropy_adds_up(labels):
    np.testing.assert_allclose(labels.total, labels.data + labels.knowledge)
    np.testing.assert_allclose(labels.proba.sum(axis=1), 1)
    entropy = -(labels.proba * np.log(labels.proba)).sum(axis=1)
    np.testing.assert_allclose(labels.entropy, entropy, atol=1e-9)
    assert (labels.knowledge > -1e-12).all()


def test_labels_and_log_probabilities_come_from_the_probabilities(labels):
    np.testing.assert_array_equal(labels.labels, labels.classes[labels.proba.argmax(axis=1)])
    np.testing.assert_array_equal(labels.label, labels.labels)
    np.testing.assert_allclose(labels.logpmf("low"), np.log(labels.proba[:, list(labels.classes).index("low")]))
    np.testing.assert_allclose(labels.logpmf(labels.label), np.log(labels.proba.max(axis=1)))
    with pytest.raises(ValueError, match="not a class of the model"):
        labels.logpmf("huge")
    with pytest.raises(ValueError, match=r"y has shape \(2,\)"):
        labels.logpmf(["low", "high"])


def test_impossible_numbers_of_draws_are_rejected(dist, labels):
    for draw in (dist.sample, dist.sample_functions, labels.sample, labels.sample_functions):
        assert draw(0).shape[:2] == (120, 0)
        for n in (-1, 2**80):
            with pytest.raises(ValueError, match=f"n = {n}: expected a whole number from 0"):
                draw(n)
        with pytest.raises(TypeError):
            draw(1.5)


def test_distributions_can_be_pickled_and_copied(mixed, regressor, classifier):
    cells, y = mixed
    train, rows = pd.DataFrame(cells), pd.DataFrame(cells)[::-1].assign(colour="unseen")
    for model in (regressor().fit(train, y), classifier().fit(train, y > 4)):
        dist = model.predict_dist(rows)
        for again in (pickle.loads(pickle.dumps(dist)), copy.deepcopy(dist)):
            np.testing.assert_array_equal(again.knowledge, dist.knowledge)
            np.testing.assert_array_equal(again.sample(2, random_state=0), dist.sample(2, random_state=0))


def test_sampled_classes_are_classes(labels):
    draws = labels.sample(6, random_state=0)
    assert draws.shape == (len(labels), 6)
    assert set(draws.ravel()) <= set(labels.classes)
