"""Out-of-domain detection: `ood` against scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from softwood import VSTRegressor, ood


def test_auroc_equals_that_of_scikit_learn(regression, kind, quick):
    X, y = regression
    model = kind(**quick).fit(X, y if kind.__name__.endswith("Regressor") else y > 0)
    outside = 3 * X[::2] + 1
    report = ood(model, X, outside)
    assert (report["n_in"], report["n_out"]) == (120, 60)
    inner, outer = model.predict_dist(X), model.predict_dist(outside)
    is_outside = np.repeat([0, 1], [120, 60])
    for name in ("total", "data", "knowledge"):
        scores = np.concatenate([getattr(inner, name), getattr(outer, name)])
        if np.ptp(scores) < 1e-9 * scores.mean():
            continue  # a constant noise: only rounding would be ranked
        part = report[name]
        assert part["auroc"] == pytest.approx(roc_auc_score(is_outside, scores), abs=1e-12)
        # ranks, since scikit-learn splits in 32 bits
        ranks = np.unique(scores, return_inverse=True)[1][:, None]
        leaves = DecisionTreeClassifier(max_depth=1, random_state=0).fit(ranks, is_outside).predict_proba(ranks)
        assert part["one_split_auroc"] == pytest.approx(roc_auc_score(is_outside, leaves[:, 1]), abs=1e-12)


def test_columns_match_by_name(mixed, regressor):
    cells, y = mixed
    table = pd.DataFrame(cells)
    model = regressor().fit(table, y)
    assert ood(model, table[::-1], table.assign(count=99)) == ood(
        model, table[["flag", "count", "colour", "size"]], table.assign(count=99, extra=1)
    )


def test_bad_arguments_of_ood_are_rejected(regression, regressor):
    X, y = regression
    with pytest.raises(NotFittedError):
        ood(regressor(), X, X)
    with pytest.raises(TypeError, match="Pipeline: expected a fitted estimator of softwood"):
        ood(make_pipeline(VSTRegressor()), X, X)
    with pytest.raises(ValueError, match="2 features"):
        ood(regressor().fit(X, y), X, X[:, :2])
