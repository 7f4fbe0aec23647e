"""Class labels: a label comes back from a model file as what it was, or is rejected by `fit`."""

import datetime
import decimal
import enum
import json
import subprocess

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from test_round_trip import program, run

import softwood
from softwood import SGBClassifier, TreeClassifier, TreeRegressor


class Colour(str, enum.Enum):
    RED = "red"
    BLUE = "blue"


X = np.random.default_rng(0).normal(size=(60, 2))


def column(*labels):
    """Return a label for each row that a tree can predict."""
    return [labels[i] for i in np.digitize(X[:, 0], np.linspace(-1, 1, len(labels) + 1)[1:-1])]


def objects(*labels):
    return np.fromiter(column(*labels), dtype=object, count=len(X))


def fitted(y):
    return TreeClassifier(n_members=2, random_state=0).fit(X, y)


def assert_same_labels(ours, theirs):
    assert ours.dtype == theirs.dtype
    assert [(type(label), label) for label in ours.tolist()] == [(type(label), label) for label in theirs.tolist()]


KEPT = {
    "texts True and False": column("False", "True"),
    "object True and False": objects("False", "True"),
    "TRUE, True and true": column("TRUE", "True", "true"),
    "booleans": np.array(column(False, True)),
    "object booleans": objects(False, True),
    "pandas booleans": pd.Series(column(False, True), dtype="boolean"),
    "arrow booleans": pa.chunked_array([column(False, True)]),
    "integers": column(1, 2),
    "small integers": np.array(column(1, 2), dtype=np.int8),
    "pandas integers": pd.Series(column(2**60, 2**60 + 1), dtype="Int64"),
    "unsigned integers": np.array(column(2**63 + 1, 2**63 + 2), dtype=np.uint64),
    "a list of large integers": column(2**63 + 1, 2**63 + 2),
    "floats": np.array(column(1.0, 2.0)),
    "single floats": np.array(column(1.0, 2.0), dtype=np.float32),
    "numbers as texts": column("1", "1.0"),
    "texts that end with a zero character": column("a", "a\0"),
    "objects that end with a zero character": objects("a", "a\0"),
    "empty text": column("", "b"),
    "big-endian integers": np.array(column(1, 2), dtype=">i4"),
    "categories of pandas": pd.Series(column("a", "b"), dtype="category"),
    "polars": pl.Series(column("a", "b")),
}


@pytest.mark.parametrize("y", KEPT.values(), ids=KEPT.keys())
def test_a_file_keeps_labels_and_their_type(y, tmp_path):
    model = fitted(y)
    given = {softwood._labels.text(label) for label in np.asarray(y, dtype=object)}
    assert len(model.classes_) == len(given), "no two labels fall together"
    model.save(tmp_path / "model.softwood")
    again = softwood.load(tmp_path / "model.softwood")
    assert_same_labels(again.classes_, model.classes_)
    assert_same_labels(again.predict(X), model.predict(X))
    assert np.mean(again.predict(X).astype(object) == np.asarray(y, dtype=object)) > 0.9
    assert softwood.score(again, X, y)["error"] < 0.1
    np.testing.assert_array_equal(again.predict_dist(X).logpmf(y), model.predict_dist(X).logpmf(y))


REJECTED = {
    "dates": objects(datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)),
    "a list of dates": column(datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)),
    "datetime64": np.array(column("2020-01-01", "2021-01-01"), dtype="M8[D]"),
    "timedelta64": np.array(column(1, 2), dtype="m8[s]"),
    "objects of timedelta64": objects(np.timedelta64(1, "s"), np.timedelta64(2, "s")),
    "timestamps": pd.Series(pd.to_datetime(column("2020-01-01", "2021-01-01"))),
    "zoned timestamps": pd.Series(pd.to_datetime(column("2020-01-01", "2021-01-01"), utc=True)),
    "periods": pd.Series(pd.PeriodIndex(column("2020", "2021"), freq="Y")),
    "bytes": column(b"a", b"b"),
    "tuples": objects((1, 2), (3, 4)),
    "decimals": column(decimal.Decimal(1), decimal.Decimal(2)),
    "enumerations": column(Colour.RED, Colour.BLUE),
    "texts and numbers": column("a", 1),
    "booleans and numbers": column(True, 2),
    "integers beyond 64 bits": column(1, 2**70),
    "integers of no common type": column(-1, 2**63),
}


@pytest.mark.parametrize("y", REJECTED.values(), ids=REJECTED.keys())
def test_other_labels_are_rejected_by_fit(y):
    with pytest.raises(ValueError, match=r"^y.* convert (the labels|them) to texts"):
        fitted(y)


def test_lone_surrogates_and_masked_and_missing_labels_are_rejected():
    with pytest.raises(ValueError, match=r"y has the class '\\ud800', which UTF-8 cannot encode"):
        fitted(column("a", "\ud800"))
    mask = np.arange(len(X)) == 3
    for model in (TreeClassifier(), TreeRegressor()):
        with pytest.raises(ValueError, match="y, row 4: the cell is masked"):
            model.fit(X, np.ma.masked_array(np.array(column(1, 2)), mask=mask))
    for labels in (objects(1, 2), objects("a", "b")):
        labels[4] = None
        with pytest.raises(ValueError, match="row 5: the target cell is missing"):
            fitted(labels)


def test_booleans_and_texts_of_another_case_match_the_classes_of_a_model():
    booleans = np.array(column(False, True))
    spellings = [booleans, np.where(booleans, "True", "False"), np.where(booleans, "TRUE", "false")]
    for y in spellings:
        model = fitted(y)
        for labels in spellings:
            assert softwood.score(model, X, labels)["error"] < 0.1
            np.testing.assert_array_equal(model.predict_dist(X).logpmf(labels), model.predict_dist(X).logpmf(y))
    with pytest.raises(ValueError, match="`FALSE` is not a class of the model"):
        softwood.score(fitted(column("false", "False")), X, column("FALSE", "FALSE"))


def test_class_weights_are_given_by_the_label():
    y = column("True", "False", "true")
    weights = {"True": 1.0, "False": 1.0, "true": 50.0}
    model = SGBClassifier(n_estimators=2, n_members=1, learning_rate=0.1, max_depth=2, class_weight=weights)
    shares = model.fit(X, y).predict_proba(X).mean(axis=0)
    assert model.classes_.tolist() == ["False", "True", "true"]
    assert shares[2] > 0.8


def test_labels_of_files_without_a_numpy_type_are_integers_floats_booleans_or_texts():
    for names, kind, expected in [
        (["1", "2"], "number", np.array([1, 2])),
        (["1", "2.5"], "number", np.array([1.0, 2.5])),
        (["9223372036854775809", "9223372036854775810"], "number", np.array([2**63 + 1, 2**63 + 2], dtype=np.uint64)),
        (["-1", "9223372036854775810"], "number", np.array([-1, 2**63 + 2], dtype=object)),
        (["false", "true"], "boolean", np.array([False, True])),
        (["a", "b"], "text", np.array(["a", "b"])),
        (["a", "a\0"], "text", np.array(["a", "a\0"], dtype=object)),
    ]:
        assert_same_labels(softwood._labels.from_file(names, kind, None), expected)
        assert_same_labels(softwood._labels.from_file(names, kind, "of a later version"), expected)
    with pytest.raises(ValueError, match="not a readable model: its classes are not of the type int8"):
        softwood._labels.from_file(["1", "300"], "number", "int8")


@pytest.mark.parametrize("labels", [("False", "True"), ("TRUE", "true"), (False, True), (2**63 + 1, 2**63 + 2)])
def test_the_command_line_predicts_the_labels(labels, tmp_path):
    model = fitted(column(*labels))
    model.save(tmp_path / "model.softwood")
    pd.DataFrame(X, columns=["x0", "x1"]).to_csv(tmp_path / "rows.csv", index=False)
    run("predict", tmp_path / "model.softwood", tmp_path / "rows.csv", "-o", tmp_path / "answers.csv")
    found = pd.read_csv(tmp_path / "answers.csv", dtype=str)["label"]
    assert found.tolist() == [softwood._labels.text(label) for label in model.predict(X)]


def test_the_command_line_scores_the_texts_true_and_false(tmp_path):
    y = column("False", "True")
    fitted(y).save(tmp_path / "model.softwood")
    pd.DataFrame(X, columns=["x0", "x1"]).assign(target=y).to_csv(tmp_path / "rows.csv", index=False)
    command = [program(), "score", tmp_path / "model.softwood", tmp_path / "rows.csv", "--json"]
    scores = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert scores["scores"]["error"] < 0.1


def test_a_refit_that_fails_keeps_labels_columns_and_predictions():
    model = TreeClassifier(n_members=2, random_state=0).fit(pd.DataFrame(X, columns=["a", "b"]), column("a", "b"))
    before = model.predict(pd.DataFrame(X, columns=["a", "b"]))
    with pytest.raises(ValueError, match="weight"):
        model.fit(np.column_stack([X, X]), column("yes", "no"), sample_weight=-np.ones(len(X)))
    assert model.classes_.tolist() == ["a", "b"]
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.n_features_in_ == 2
    assert model.predict(pd.DataFrame(X, columns=["a", "b"])).tolist() == before.tolist()
