"""Round trips: files, pickles, copies, and files of the command line."""

import copy
import os
import pickle
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_regressor

import softwood

PROGRAM = Path(__file__).parents[2] / "target" / "release" / "softwood"


@pytest.fixture
def fitted(mixed, regressor):
    cells, y = mixed
    return regressor().fit(pd.DataFrame(cells), y), pd.DataFrame(cells)


def assert_same(ours, theirs, X):
    assert type(ours) is type(theirs)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_array_equal(ours.predict_dist(X).knowledge, theirs.predict_dist(X).knowledge)
    assert ours.n_features_in_ == theirs.n_features_in_


def test_files_keep_the_model(fitted, tmp_path):
    model, X = fitted
    model.save(tmp_path / "model.softwood")
    again = softwood.load(str(tmp_path / "model.softwood"))
    assert_same(again, model, X)
    assert again.feature_names_in_.tolist() == model.feature_names_in_.tolist()


def test_files_keep_the_parameters(fitted, tmp_path):
    model, _ = fitted
    model.save(tmp_path / "model.softwood")
    again, ours = softwood.load(tmp_path / "model.softwood").get_params(), model.get_params()
    del again["random_state"], ours["random_state"]
    assert again == ours


def test_files_keep_models_without_feature_names(regression, regressor, tmp_path):
    X, y = regression
    model = regressor().fit(X, y)
    model.save(tmp_path / "model.softwood")
    again = softwood.load(tmp_path / "model.softwood")
    assert not hasattr(again, "feature_names_in_")
    assert_same(again, model, X)


def test_files_keep_names_that_look_like_those_of_columns_without_names(regression, regressor, tmp_path):
    X, y = regression
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    model = regressor().fit(frame, y)
    model.save(tmp_path / "model.softwood")
    again = softwood.load(tmp_path / "model.softwood")
    assert again.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    turned = frame[["x2", "x0", "x1"]]
    np.testing.assert_array_equal(again.predict(turned), model.predict(frame))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        np.testing.assert_array_equal(again.predict(X), model.predict(frame))


def test_files_of_the_command_line_have_the_names_of_the_table(regression, tmp_path):
    X, y = regression
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    frame.assign(y=y).to_csv(tmp_path / "train.csv", index=False)
    run("fit", tmp_path / "train.csv", "--target", "y", "--model", "tree", "-o", tmp_path / "model.softwood")
    model = softwood.load(tmp_path / "model.softwood")
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2"]
    np.testing.assert_array_equal(model.predict(frame[["x2", "x0", "x1"]]), model.predict(frame))


@pytest.mark.parametrize(
    "labels",
    [[0, 3], [-1, 1], [False, True], ["no", "yes"], ["1", "2"], ["0.5", "1.5"], ["false", "true"]],
)
def test_files_keep_the_type_of_classes(classification, classifier, tmp_path, labels):
    X, _ = classification
    model = classifier().fit(X, np.array(labels)[(X[:, 0] > 0).astype(int)])
    model.save(tmp_path / "model.softwood")
    again = softwood.load(tmp_path / "model.softwood")
    assert_same(again, model, X)
    assert again.classes_.dtype == model.classes_.dtype
    assert again.classes_.tolist() == model.classes_.tolist()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_and_pickles_are_the_same_model(classification, classifier, copied):
    X, y = classification
    model = classifier().fit(X, y)
    assert_same(copied(model), model, X)


def test_saving_the_loaded_model_gives_the_same_bytes(fitted, tmp_path):
    model, _ = fitted
    model.save(tmp_path / "one.softwood")
    softwood.load(tmp_path / "one.softwood").save(tmp_path / "two.softwood")
    assert (tmp_path / "one.softwood").read_bytes() == (tmp_path / "two.softwood").read_bytes()


def test_bad_files_raise_the_exception_of_their_problem(fitted, tmp_path):
    model, _ = fitted
    with pytest.raises(FileNotFoundError, match=r"absent\.softwood"):
        softwood.load(tmp_path / "absent.softwood")
    with pytest.raises(FileNotFoundError):
        model.save(tmp_path / "no" / "such" / "folder.softwood")
    with pytest.raises(IsADirectoryError):
        softwood.load(tmp_path)
    (tmp_path / "text.softwood").write_text("not a model")
    with pytest.raises(ValueError, match="not a readable model"):
        softwood.load(tmp_path / "text.softwood")
    model.save(tmp_path / "whole.softwood")
    (tmp_path / "half.softwood").write_bytes((tmp_path / "whole.softwood").read_bytes()[:-9])
    with pytest.raises(ValueError, match="not a readable model"):
        softwood.load(tmp_path / "half.softwood")


def program():
    found = os.environ.get("SOFTWOOD_PROGRAM") or (str(PROGRAM) if PROGRAM.exists() else shutil.which("softwood"))
    if not found:
        pytest.skip("the command line is not built: cargo build --release -p softwood-cli")
    return found


def run(*arguments):
    subprocess.run([program(), *map(str, arguments)], check=True, capture_output=True)


def test_command_line_and_python_fit_the_same_model(mixed, quick, tmp_path, kind):
    cells, y = mixed
    X = pd.DataFrame(cells).drop(columns="flag")
    target = pd.Series(y if is_regressor(kind()) else np.where(y > 4, "much", "little"), name="amount")
    X.assign(amount=target).to_csv(tmp_path / "train.csv", index=False)
    texts = {name: str(value).lower() for name, value in quick.items() if name != "random_state"}
    given = [f"-p{name}={text}" for name, text in texts.items()]
    seed = ["--seed", quick["random_state"]]
    model = ["--model", kind._family]
    run("fit", tmp_path / "train.csv", "--target", "amount", *model, *given, *seed, "-o", tmp_path / "model.softwood")
    theirs = softwood.load(tmp_path / "model.softwood")
    assert_same(theirs, kind(**quick).fit(X, target), X)


def test_command_line_reads_files_of_python(mixed, regressor, tmp_path):
    cells, y = mixed
    X = pd.DataFrame(cells).drop(columns="flag")
    model = regressor().fit(X, y)
    model.save(tmp_path / "model.softwood")
    X.to_csv(tmp_path / "rows.csv", index=False)
    run("predict", tmp_path / "model.softwood", tmp_path / "rows.csv", "-o", tmp_path / "answers.csv")
    np.testing.assert_allclose(pd.read_csv(tmp_path / "answers.csv")["mean"], model.predict(X))
