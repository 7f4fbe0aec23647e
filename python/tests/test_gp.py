"""The Gaussian process beside scikit-learn's, with the same kernel and fixed hyper-parameters."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from softwood import GPRegressor, HeteroscedasticGPRegressor, TreeRegressor

SHAPES = {"squared_exponential": None, "matern12": 0.5, "matern32": 1.5, "matern52": 2.5}


@pytest.fixture
def rows():
    """Return training rows, whose columns and target are standardised to the digits of f32, and new rows."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 3))
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32).astype(float)
    X[-1] -= X.sum(axis=0)  # a mean of zero and, nearly, a standard deviation of one
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=80)
    return X, y, rng.normal(size=(50, 3))


def standardised(X, new):
    """Return both tables as the encoder stores them."""
    mean, sd = X.mean(axis=0), X.std(axis=0)
    return [((part - mean) / sd).astype(np.float32).astype(float) for part in (X, new)]


def peer(shape, X, y):
    """Fit scikit-learn's process to a standardised target."""
    nu = SHAPES[shape]
    stationary = RBF(1.3) if nu is None else Matern(1.3, nu=nu)
    kernel = ConstantKernel(0.9**2) * stationary + WhiteKernel(0.25**2)
    return GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, (y - y.mean()) / y.std())


@pytest.mark.parametrize("shape", SHAPES)
def test_mean_and_standard_deviation_are_those_of_scikit_learn(rows, shape):
    X, y, new = rows
    fixed = {"length_scale": 1.3, "signal_scale": 0.9, "noise_scale": 0.25}
    dist = GPRegressor(kernel=shape, **fixed, random_state=0).fit(X, y).predict_dist(new)
    inputs, new_inputs = standardised(X, new)
    mean, std = peer(shape, inputs, y).predict(new_inputs, return_std=True)
    np.testing.assert_allclose(dist.mean, y.mean() + y.std() * mean, rtol=0, atol=1e-6)
    np.testing.assert_allclose(dist.std, y.std() * std, rtol=0, atol=1e-6)
    np.testing.assert_allclose(dist.data, (0.25 * y.std()) ** 2, rtol=1e-9)


def test_the_marginal_likelihood_is_that_of_scikit_learn(rows):
    """The curve holds the log density per row; the prior of the only free parameter adds a small, known part."""
    X, y, _ = rows
    fixed = {"length_scale": 1.3, "signal_scale": 0.9, "calibrate_noise": False}
    model = GPRegressor(kernel="matern32", **fixed, random_state=0).fit(X, y)
    inputs, _ = standardised(X, X)
    kernel = ConstantKernel(0.9**2) * Matern(1.3, nu=1.5) + WhiteKernel(float(model.predict_dist(X).data[0]) / y.var())
    gp = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(inputs, (y - y.mean()) / y.std())
    sd = np.sqrt(float(model.predict_dist(X).data[0]) / y.var() - 1e-6)
    prior = -0.5 * np.log(sd / 0.1) ** 2
    expected = (gp.log_marginal_likelihood_value_ + prior) / len(y)
    assert model.training_["curve"][-1]["elbo"] == pytest.approx(expected, abs=1e-6)


def test_there_is_no_classifier_and_classes_are_refused(rows):
    import softwood

    assert not hasattr(softwood, "GPClassifier")
    X, y, _ = rows
    with pytest.raises(ValueError, match="number"):
        GPRegressor().fit(X, np.where(y > 0, "high", "low"))


def test_members_have_the_exact_mean_and_variance(rows):
    X, y, new = rows
    model = GPRegressor(n_members=10, random_state=0).fit(X, y)
    dist = model.predict_dist(new)
    np.testing.assert_allclose(dist.members.mean(axis=1), dist.mean, atol=1e-9)
    np.testing.assert_allclose(dist.members.var(axis=1), dist.knowledge, rtol=1e-9)


def test_the_joint_distribution_has_the_knowledge_uncertainty_on_its_diagonal(rows):
    X, y, new = rows
    dist = GPRegressor(random_state=0, max_iterations=5).fit(X, y).predict_dist(new)
    mean, covariance = dist.joint()
    np.testing.assert_allclose(mean, dist.mean, atol=1e-9)
    np.testing.assert_allclose(np.diag(covariance), dist.knowledge, rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(covariance, covariance.T)
    assert TreeRegressor(random_state=0).fit(X, y).predict_dist(new).joint() is None


def test_a_noise_with_a_step_is_a_tree_with_two_leaves():
    rng = np.random.default_rng(0)
    x = np.linspace(-1, 1, 300)
    y = np.sin(2 * x) + np.where(x > 0.2, 0.8, 0.1) * rng.normal(size=300)
    model = HeteroscedasticGPRegressor(random_state=0).fit(x[:, None], y)
    noise = np.sqrt(model.predict_dist([[-0.5], [0.6]]).data)
    np.testing.assert_allclose(np.log(noise), np.log([0.1, 0.8]), atol=0.25)
    nodes = model.export_dict()["nodes"]
    assert len(nodes) == 3
    assert nodes[0]["split"]["question"]["above"] == pytest.approx(0.2, abs=0.05)
