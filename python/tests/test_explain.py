"""Permutation importances, gains, tree export, and training a fitted model further."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from softwood import SGLBRegressor, VSTRegressor, _native, load
from softwood._base import REGISTRY

SUPPORTS_WARM_START = {family["name"]: family["supports_warm_start"] for family in json.loads(_native.families())}


def test_the_most_important_column_has_the_largest_importance(regression, kind, quick):
    X, y = regression
    y = y if kind.__name__.endswith("Regressor") else np.where(y > 0, "yes", "no")
    model = kind(**quick).fit(X, y)
    found = model.importances(X, y, n_repeats=3)
    assert list(found["column"]) == ["x0", "x1", "x2"]
    assert {values.shape for values in found.values()} == {(3,)}
    assert all(np.isfinite(values).all() for name, values in found.items() if name != "column")
    assert np.argmax(found["log_likelihood_fall"]) == np.argmax(found["prediction_change"]) == 1
    # the changes of the prediction do not depend on the target
    without = model.importances(X, n_repeats=3)
    assert "error_rise" not in without
    np.testing.assert_array_equal(without["knowledge_change"], found["knowledge_change"])
    assert pd.DataFrame(found).set_index("column").shape == (3, 10)


def test_importances_depend_on_the_seed_but_not_on_threads(regression, regressor):
    X, y = regression
    one = regressor(n_jobs=1).fit(X, y).importances(X, y)
    two = regressor(n_jobs=2).fit(X, y).importances(X, y)
    other = regressor().fit(X, y).importances(X, y, random_state=1)
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
    assert not np.array_equal(one["prediction_change"], other["prediction_change"])


def test_cells_of_reference_rows_lower_the_knowledge_uncertainty_of_distant_rows(regression):
    X, y = regression
    model = VSTRegressor(max_depth=1, n_epochs=20, random_state=0).fit(X, y)
    far = X.copy()
    far[:, 2] += 50
    found = model.importances(far, X_ref=X)
    assert np.argmin(found["knowledge_shift"]) == 2
    assert found["knowledge_shift"][2] < 0


def test_columns_match_by_name_and_a_file_keeps_the_importances(mixed, regressor, tmp_path):
    cells, y = mixed
    table = pd.DataFrame(cells)
    model = regressor().fit(table, y)
    found = model.importances(table, y)
    assert list(found["column"]) == list(table.columns)
    model.save(tmp_path / "model.softwood")
    again = load(tmp_path / "model.softwood").importances(table[table.columns[::-1]], pd.Series(y, name="another"))
    for name in found:
        np.testing.assert_array_equal(found[name], again[name])


def test_families_that_split_on_columns_have_gains(regression, kind, quick):
    X, y = regression
    model = kind(**quick)
    with pytest.raises(NotFittedError):
        model.feature_importances_  # noqa: B018
    model.fit(X, y if kind.__name__.endswith("Regressor") else y > 0)
    if kind._family in ("vst", "vsgbm", "vart", "soft-tree", "gp", "gp-rnn-tree"):
        assert not hasattr(model, "feature_importances_")
        with pytest.raises(AttributeError, match="does not split on columns"):
            model.feature_importances_  # noqa: B018
        return
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert np.argmax(model.feature_importances_) == 1


def test_bad_arguments_of_importances_are_rejected(regression, regressor):
    X, y = regression
    with pytest.raises(NotFittedError):
        regressor().importances(X)
    model = regressor().fit(X, y)
    for wrong in (0, 1001, 2.5):
        with pytest.raises(ValueError, match="n_repeats = "):
            model.importances(X, n_repeats=wrong)
    with pytest.raises(ValueError, match="2 features"):
        model.importances(X[:, :2])
    with pytest.raises(ValueError, match="119 target values for 120 rows"):
        model.importances(X, y[:-1])


def test_a_single_tree_is_exported_as_text_svg_and_dict(regression, kind, quick):
    X, y = regression
    model = kind(**quick).fit(X, y if kind.__name__.endswith("Regressor") else y > 0)
    if kind._family not in ("tree", "ldt", "soft-tree", "vart", "rnn-tree", "gp-rnn-tree"):
        for export in (model.export_text, model.export_svg, model.export_dict):
            with pytest.raises(ValueError, match="is not a single tree"):
                export()
        return
    nodes = model.export_dict()["nodes"]
    assert len(model.export_text().splitlines()) == len(nodes)
    assert ET.fromstring(model.export_svg()).tag.endswith("svg")


def test_the_posterior_over_structures(regression, kind, quick):
    X, y = regression
    model = kind(**quick).fit(X, y if kind.__name__.endswith("Regressor") else y > 0)
    if kind._family != "vart":
        with pytest.raises(ValueError, match="no posterior over the structure"):
            model.structure()
        return
    found = model.structure()
    assert sum(found["n_leaves"]) == pytest.approx(1)
    assert sum(found["depth"]) == pytest.approx(1)
    assert found["nodes"][0]["node"] == 1
    assert found["nodes"][0]["exists"] == pytest.approx(1)


def test_every_family_is_trained_further_or_raises(regression, classification, family, quick):
    for task, (X, y) in (("regression", regression), ("classification", classification)):
        if (family, task) not in REGISTRY:
            continue
        model = REGISTRY[family, task](**quick)
        with pytest.raises(NotFittedError):
            model.resume(X, y)
        model.fit(X[:80], y[:80])
        before = model._model.to_bytes()
        if not SUPPORTS_WARM_START[family]:
            with pytest.raises(ValueError, match=f"a `{family}` model cannot be trained further"):
                model.resume(X, y)
            assert model._model.to_bytes() == before
            continue
        assert model.resume(X, y) is model
        assert model._model.to_bytes() != before
        assert np.isfinite(model.score(X, y))


def test_a_failed_resume_keeps_the_parameters(regression, regressor, family):
    X, y = regression
    model = regressor().fit(X, y)
    before = model.get_params()
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.resume(X, y, no_such_thing=1)
    if not SUPPORTS_WARM_START[family]:
        with pytest.raises(ValueError, match="cannot be trained further"):
            model.resume(X, y, n_members=2)
        assert model.get_params() == before
        return
    name = "n_epochs" if "n_epochs" in before else "n_estimators"
    model.resume(X, y, **{name: 7})
    assert model.get_params()[name] == 7
    with pytest.raises(ValueError, match="2 features"):
        model.resume(X[:, :2], y)


def test_resume_keeps_the_classes_of_the_fit(classification):
    X, y = classification
    model = REGISTRY["sglb", "classification"](n_estimators=10, n_members=2, max_depth=2, learning_rate=0.1)
    model.fit(X, y)
    two = y != "middle"
    np.testing.assert_array_equal(model.resume(X[two], y[two]).classes_, ["high", "low", "middle"])
    with pytest.raises(ValueError, match="`huge` is not a class of the model"):
        model.resume(X, np.where(y == "low", "huge", y))


def test_the_name_of_a_validation_target_does_not_matter(regression):
    X, y = regression
    model = SGLBRegressor(n_estimators=10, n_members=2, random_state=0)
    model.fit(X, pd.Series(y, name="price"), X_val=X, y_val=y)
    assert np.isfinite(model.predict(X)).all()
