"""Effects of treatments: known effects, intervals, names of EconML, inputs and errors."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from softwood import ForestRegressor, TreeClassifier, TreeRegressor, VSTRegressor
from softwood.causal import CausalEstimator, ihdp_problem, toy_problem


def confounded(n=500, seed=0, slope=0.0):
    """Rows whose covariate makes treatment and outcome larger; the effect is 2 + slope * x."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    T = (rng.uniform(size=n) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    Y = 3 * X[:, 0] - X[:, 1] + (2 + slope * X[:, 0]) * T + rng.normal(0, 0.5, n)
    return Y, T, X


def quick(method="doubly-robust", **params):
    return CausalEstimator(TreeRegressor(), method, propensity=TreeClassifier(), **params)


@pytest.mark.parametrize("method", ["single", "per-arm", "doubly-robust"])
def test_every_method_finds_a_linear_effect(method):
    Y, T, X = confounded()
    linear = VSTRegressor(
        max_depth=0, leaf_model="linear", n_epochs=60, n_fits=1, scaling="standard", rotation="none", squares=False
    )
    effects = CausalEstimator(linear, method).fit(Y, T, X)
    found = effects.ate_inference()
    assert abs(found.mean_point - 2) < 0.2
    assert effects.naive_difference_ > 3.5
    assert effects.ate() == found.mean_point
    lower, upper = effects.ate_interval()
    assert (lower, upper) == found.conf_int(0.1) == found.conf_int_mean(alpha=0.1)
    assert lower < 2 < upper
    wide = found.conf_int(alpha=0.01)
    assert wide[0] < lower
    assert wide[1] > upper
    assert found.stderr == found.stderr_mean > 0
    assert abs(np.mean(found.draws) - found.mean_point) < 3 * found.stderr
    lower, upper = effects.effect_interval(X, alpha=0.1)
    assert np.mean((lower < 2) & (upper > 2)) > 0.5


def test_effects_of_rows():
    Y, T, X = confounded(800, slope=2.0)
    effects = quick().fit(Y, T, X)
    found = effects.effect(X)
    assert found.shape == (800,)
    assert np.corrcoef(found, 2 + 2 * X[:, 0])[0, 1] > 0.8
    assert (effects.effect_std(X) > 0).all()
    lower, upper = effects.effect_interval(X)
    assert ((lower < found) & (found < upper)).all()
    assert effects.ate(X) == pytest.approx(found.mean())


def test_tables_and_kinds_of_treatments_agree():
    pd = pytest.importorskip("pandas")
    Y, T, X = confounded(200)
    expected = quick().fit(Y, T, X).ate_inference()
    frame = pd.DataFrame(X, columns=["x0", "x1"])
    named = pd.DataFrame({"treatment": X[:, 0], "outcome": X[:, 1]})
    for y, t, x in [
        (list(Y), T.astype(bool), X),
        (pd.Series(Y), pd.Series(T), frame),
        (Y, np.where(T == 1, "drug", "control"), frame),
        (Y, T[:, None], X),
        (Y, T, named),
    ]:
        found = quick().fit(y, t, x).ate_inference()
        assert found.mean_point == expected.mean_point
        assert found.stderr == expected.stderr


def test_levels_can_be_chosen():
    Y, T, X = confounded(300)
    T = T + 1
    T[:50] = 7
    effects = quick(treated=1, control=2).fit(Y, T, X)
    assert effects.levels_ == ("1", "2")
    assert effects.ate() < 0
    assert len(effects.overlap().propensity) == len(effects.row_indices_) == 250
    with pytest.raises(ValueError, match="3 levels"):
        quick().fit(Y, T, X)


def test_policies():
    Y, T, X = confounded(600, slope=4.0)
    effects = quick().fit(Y, T, X)
    best = effects.policy_value(cost=0.5)
    assert best.value["mean"] > max(best.treat_all["mean"], best.treat_none["mean"])
    assert best.share_treated == pytest.approx(best.decisions.mean())
    nobody = effects.policy_value(np.zeros(600, dtype=int))
    assert nobody.value["mean"] == pytest.approx(best.treat_none["mean"])
    assert nobody.gain["mean"] == pytest.approx(0)
    with pytest.raises(ValueError, match="one decision for each row"):
        effects.policy_value(np.full(600, 2))


def test_overlap_warns():
    problem = toy_problem(300)
    effects = CausalEstimator(TreeRegressor(), "single").fit(problem.outcome, problem.treatment, problem.X)
    overlap = effects.overlap()
    assert overlap.share_outside > 0.1
    assert "propensity outside" in overlap.warnings[0]
    assert overlap.propensity.shape == overlap.counterfactual_knowledge.shape == (300,)
    well = toy_problem(300, good_overlap=True)
    found = CausalEstimator(TreeRegressor(), "single").fit(well.outcome, well.treatment, well.X).overlap()
    assert not any("propensity" in text for text in found.warnings)


def test_simulated_problems():
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
    for surface in ("linear", "nonlinear"):
        problem = ihdp_problem(X, T, surface, random_state=3)
        assert problem.true_effect == pytest.approx(4)
        assert problem.true_cate.mean() == pytest.approx(4)
        assert np.array_equal(problem.treatment, T)
    with pytest.raises(ValueError, match="surface = "):
        ihdp_problem(X, T, "cubic")


def test_threads_and_seeds():
    Y, T, X = confounded(200)
    one, two = (quick(n_jobs=jobs).fit(Y, T, X) for jobs in (1, 2))
    assert np.array_equal(one.effect(X), two.effect(X))
    assert one.ate_interval() == two.ate_interval()
    other = quick(random_state=1).fit(Y, T, X)
    assert other.ate() != one.ate()


def test_population_intervals_are_wider():
    Y, T, X = confounded(300, slope=2.0)
    sample, population = (quick(scope=scope).fit(Y, T, X).ate_inference() for scope in ("sample", "population"))
    assert population.stderr > sample.stderr


def test_estimators_are_not_changed_and_can_be_cloned():
    Y, T, X = confounded(100)
    model = ForestRegressor(n_estimators=10, n_members=5)
    estimator = CausalEstimator(model, propensity="tree")
    estimator.fit(Y, T, X)
    assert not hasattr(model, "n_features_in_")
    assert clone(estimator).get_params()["method"] == "doubly-robust"


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        ({"model": "gbm"}, ValueError, "model = 'gbm'"),
        ({"model": TreeClassifier()}, TypeError, "model is a TreeClassifier"),
        ({"propensity": "gp"}, ValueError, "propensity = 'gp'"),
        ({"method": "magic"}, ValueError, "method `magic`"),
        ({"scope": "world"}, ValueError, "scope `world`"),
        ({"n_folds": 1}, ValueError, "n_folds = 1"),
        ({"clip": 0.9}, ValueError, "clip = 0.9"),
    ],
)
def test_bad_parameters(params, error, text):
    Y, T, X = confounded(60)
    with pytest.raises(error, match=text):
        CausalEstimator(**{"model": "tree", **params}).fit(Y, T, X)


def test_bad_data():
    Y, T, X = confounded(60)
    with pytest.raises(ValueError, match="all rows have the level `1`"):
        quick().fit(Y, np.ones(60), X)
    with pytest.raises(ValueError, match="NaN"):
        quick().fit(np.where(np.arange(60) == 3, np.nan, Y), T, X)
    with pytest.raises(ValueError, match="inconsistent"):
        quick().fit(Y[:50], T, X)
    effects = quick().fit(Y, T, X)
    with pytest.raises(ValueError, match="alpha = 2"):
        effects.ate_interval(alpha=2)
    with pytest.raises(ValueError, match="features"):
        effects.effect(X[:, :1])
