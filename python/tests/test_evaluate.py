"""`score` and `evaluate`: against predictive distributions, scikit-learn and the program."""

import json
import subprocess

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from test_round_trip import program

from softwood import SGBClassifier, SGBRegressor, TreeRegressor, VSTRegressor, evaluate, score

QUICK = {"n_estimators": 20, "n_members": 2, "max_depth": 2, "learning_rate": 0.1}
COSTS = {"fit_seconds", "predict_seconds", "peak_rss_bytes"}


def test_scores_of_regressors_are_those_of_the_distribution(regression, regressor):
    X, y = regression
    model = regressor().fit(X[:80], y[:80])
    scores, dist = score(model, X[80:], y[80:]), model.predict_dist(X[80:])
    assert scores["rmse"] == pytest.approx(root_mean_squared_error(y[80:], dist.mean))
    assert scores["log_likelihood"] == pytest.approx(dist.logpdf(y[80:]).mean())
    assert scores["crps"] == pytest.approx(dist.crps(y[80:]).mean(), rel=1e-6)
    assert {"coverage_90", "prr_knowledge", "rmse_std"} <= scores.keys()


def test_scores_of_classifiers_are_those_of_the_distribution(classification, classifier):
    X, y = classification
    model = classifier().fit(X[:80], y[:80])
    scores, dist = score(model, X[80:], y[80:]), model.predict_dist(X[80:])
    assert scores["error"] == pytest.approx(1 - model.score(X[80:], y[80:]))
    assert scores["nll"] == pytest.approx(-dist.logpmf(y[80:]).mean())


def test_bad_arguments_of_score_are_rejected(regression, classification):
    X, y = regression
    with pytest.raises(NotFittedError):
        score(TreeRegressor(), X, y)
    with pytest.raises(TypeError, match="model is a Pipeline: expected an estimator of softwood"):
        score(make_pipeline(VSTRegressor()), X, y)
    X, y = classification
    with pytest.raises(ValueError, match="`huge` is not a class of the model"):
        score(SGBClassifier(**QUICK).fit(X, y), X[:2], ["low", "huge"])


def without_costs(report):
    for model in report["models"]:
        for part in (model["mean"], model["sd"], *model["folds"]):
            for name in COSTS:
                del part[name]
    return report


@pytest.mark.parametrize("protocol", ["holdout:0.3", "cv:3", "paper:0.2,3"])
def test_reports_are_those_of_the_program(mixed, tmp_path, protocol):
    cells, y = mixed
    X = pd.DataFrame(cells).drop(columns="flag")
    X.assign(amount=y).to_csv(tmp_path / "train.csv", index=False)
    given = [f"-psgb.{name}={value}" for name, value in QUICK.items()]
    command = [program(), "evaluate", str(tmp_path / "train.csv"), "--target", "amount", "--model", "sgb,tree", *given]
    command += ["--protocol", protocol, "--seed", "7", "--json", "--quiet"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    theirs = without_costs(json.loads(done.stdout))
    models = [SGBRegressor(**QUICK), TreeRegressor()]
    ours = without_costs(evaluate(models, X, pd.Series(y, name="amount"), protocol, random_state=7))
    assert ours == theirs


def test_scores_are_those_of_the_program(mixed, regressor, tmp_path):
    cells, y = mixed
    X = pd.DataFrame(cells).drop(columns="flag")
    X.assign(amount=y).to_csv(tmp_path / "train.csv", index=False)
    model = regressor().fit(X, pd.Series(y, name="amount"))
    model.save(tmp_path / "model.softwood")
    command = [program(), "score", str(tmp_path / "model.softwood"), str(tmp_path / "train.csv"), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert score(model, X, y) == json.loads(done.stdout)["scores"]


def test_every_estimator_can_be_evaluated(kind, quick, regression, classification):
    rows = regression if kind.__name__.endswith("Regressor") else classification
    model = kind(**quick)
    report = evaluate(model, *rows, "cv:2")
    (found,) = report["models"]
    assert (found["model"], len(found["folds"]), report["n_rows"]) == (kind._family, 2, 120)
    assert np.isfinite(list(found["mean"].values())).all()
    assert not hasattr(model, "n_features_in_")
    assert without_costs(evaluate([model], *rows, "cv:2", n_jobs=1)) == without_costs(report)


def test_splits_are_splitters_indices_or_masks(classification):
    X, y = classification
    model = SGBClassifier(**QUICK)
    splitter = StratifiedKFold(3)
    pairs = list(splitter.split(X, y))
    report = without_costs(evaluate(model, X, y, splitter))
    assert report["protocol"] == repr(splitter)
    rows = np.arange(len(y))
    masks = [(np.isin(rows, train), np.isin(rows, test)) for train, test in pairs]
    for protocol in (pairs, iter(pairs), masks, [(train, [], test) for train, test in pairs]):
        again = without_costs(evaluate(model, X, y, protocol))
        assert again["protocol"] == "splits"
        assert again["models"] == report["models"]


def test_validation_rows_of_a_split_are_used(regression):
    X, y = regression
    rows = np.arange(len(y))
    model = SGBRegressor(**{**QUICK, "n_estimators": 100}, early_stopping_rounds=3)
    one = evaluate(model, X, y, [(rows[:60], rows[60:80], rows[80:])])
    two = evaluate(model, X, y, [(rows[:60], rows[40:60], rows[80:])])
    assert one["models"][0]["mean"]["rmse"] != two["models"][0]["mean"]["rmse"]


def test_weights_count_in_the_fits(regression):
    X, y = regression
    weights = np.where(X[:, 0] > 0, 5.0, 0.2)
    one, two = (evaluate(SGBRegressor(**QUICK), X, y, "cv:2", sample_weight=given) for given in (None, weights))
    assert one["models"][0]["mean"]["rmse"] != two["models"][0]["mean"]["rmse"]


@pytest.mark.parametrize(
    ("protocol", "error", "message"),
    [
        ("cv:1", ValueError, "protocol `cv:1`: expected holdout:F"),
        ("splits:folds.csv", ValueError, "give the row indices of each fold instead"),
        (5, TypeError, "protocol is a int: expected a text"),
        ([], ValueError, "no folds"),
        ([([0, 1], [2], [3], [4])], ValueError, "fold 0 has 4 parts"),
        ([([0, 1], [-1])], ValueError, "fold 0: expected whole numbers from 0 to 119"),
        ([([0, 1], [0.5])], ValueError, "fold 0: expected whole numbers from 0 to 119"),
        ([(range(60), [120])], ValueError, "row 120 does not exist"),
        ([(range(60), [])], ValueError, "no rows to test on"),
    ],
)
def test_bad_protocols_are_rejected(regression, protocol, error, message):
    with pytest.raises(error, match=message):
        evaluate(TreeRegressor(), *regression, protocol)


def test_bad_models_are_rejected(regression):
    for models, error, message in (
        ([], ValueError, "models is empty"),
        (5, TypeError, "model is a int: expected an estimator of softwood"),
        ([TreeRegressor(), SGBClassifier()], ValueError, "regressors and classifiers"),
        (TreeRegressor(n_members=0), ValueError, "n_members"),
    ):
        with pytest.raises(error, match=message):
            evaluate(models, *regression, KFold(2))


def test_former_names_of_values_are_noted(regression, quick_of):
    model = VSTRegressor(**quick_of("vst"), n_fits=1, prior="kind")
    with pytest.warns(FutureWarning, match="group") as noted:
        evaluate(model, *regression, "holdout:0.5")
    assert noted[0].filename == __file__
