"""Tables of pandas, polars, pyarrow and NumPy: equal cells give equal models and equal predictions."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import softwood
from softwood import _frame


def pandas_objects(cells):
    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in cells.items()})


def pandas_categories(cells):
    frame = pd.DataFrame(cells)
    frame["colour"] = pd.Categorical(cells["colour"], categories=["unused", "red", "green", "blue"])
    frame["flag"] = pd.Series(cells["flag"], dtype="boolean")
    return frame


def pandas_nullable(cells):
    return pd.DataFrame(cells).convert_dtypes()


def pandas_arrow(cells):
    return pd.DataFrame(cells).convert_dtypes(dtype_backend="pyarrow")


def polars_plain(cells):
    return pl.DataFrame(cells)


def polars_categories(cells):
    pl.Series(["green", "other", "red"], dtype=pl.Categorical)
    return pl.DataFrame(cells).with_columns(pl.col("colour").cast(pl.Categorical))


def polars_enum(cells):
    return pl.DataFrame(cells).with_columns(pl.col("colour").cast(pl.Enum(["red", "green", "unused", "blue"])))


def polars_lazy(cells):
    return pl.LazyFrame(cells)


def arrow_table(cells):
    return pa.table(cells)


def arrow_chunks(cells):
    table = pa.table(cells)
    coded = table.set_column(2, "colour", table["colour"].dictionary_encode())
    return pa.concat_tables([coded.slice(0, 40), coded.slice(40)])


def arrow_batch(cells):
    return pa.RecordBatch.from_pydict(cells)


def numpy_objects(cells):
    return np.array(list(cells.values()), dtype=object).T


TABLES = [
    pandas_objects,
    pandas_categories,
    pandas_nullable,
    pandas_arrow,
    polars_plain,
    polars_categories,
    polars_enum,
    polars_lazy,
    arrow_table,
    arrow_chunks,
    arrow_batch,
]


def columns_of(table):
    return _frame.from_array(table) if isinstance(table, np.ndarray) else _frame.from_frame(table).columns


@pytest.mark.parametrize("make", [*TABLES, numpy_objects], ids=lambda make: make.__name__)
def test_equal_cells_give_equal_columns(mixed, make):
    cells, _ = mixed
    numbers = {"size": np.array(cells["size"], dtype=float), "count": np.array(cells["count"], dtype=float)}
    columns = dict(zip(cells, columns_of(make(cells)), strict=True))
    for name, expected in numbers.items():
        _, found, levels = columns[name]
        assert levels is None
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)
    for name, expected_levels in [("colour", ["blue", "green", "red"]), ("flag", ["false", "true"])]:
        _, codes, levels = columns[name]
        assert levels == expected_levels
        assert codes.dtype == np.uint32
        texts = [None if code == _frame.MISSING else levels[code] for code in codes]
        assert texts == [None if cell is None else _frame.text(cell) for cell in cells[name]]


@pytest.mark.parametrize("make", TABLES, ids=lambda make: make.__name__)
def test_predictions_do_not_depend_on_the_library(mixed, regressor, make):
    cells, y = mixed
    expected = regressor().fit(polars_plain(cells), y)
    model = regressor().fit(make(cells), y)
    assert model.feature_names_in_.tolist() == list(cells)
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.predict(make(cells)), expected.predict(polars_plain(cells)))
    np.testing.assert_array_equal(expected.predict(make(cells)), expected.predict(polars_plain(cells)))


def test_arrays_and_frames_of_numbers_agree(regression, regressor):
    X, y = regression
    model = regressor().fit(X, y)
    for table in (pd.DataFrame(X), X.tolist(), np.asfortranarray(X)):
        np.testing.assert_array_equal(model.predict(table), model.predict(X))
    named = regressor().fit(pd.DataFrame(X, columns=["x0", "x1", "x2"]), y)
    np.testing.assert_array_equal(named.predict(pl.DataFrame(X, schema=["x0", "x1", "x2"])), model.predict(X))


def test_columns_match_by_name_in_any_order_and_extra_ones_are_ignored(mixed, regressor):
    cells, y = mixed
    table = pd.DataFrame(cells)
    model = regressor().fit(table, y)
    shuffled = table.assign(extra=1.0)[["flag", "extra", "colour", "count", "size"]]
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(table))


def test_a_missing_column_is_named(mixed, regressor):
    cells, y = mixed
    model = regressor().fit(pl.DataFrame(cells), y)
    with pytest.raises(ValueError, match="column `count`: there is no such column; there are size, colour, flag"):
        model.predict(pl.DataFrame(cells).drop("count"))


def test_text_in_a_numeric_column_is_named(mixed, regressor):
    cells, y = mixed
    model = regressor().fit(pd.DataFrame(cells), y)
    with pytest.raises(ValueError, match=r"column `count`, row 1: `many` is not a number"):
        model.predict(pd.DataFrame(cells).assign(count="many"))


def test_unseen_categories_and_empty_rows_have_predictions(mixed, regressor):
    cells, y = mixed
    model = regressor().fit(pd.DataFrame(cells), y)
    strange = pd.DataFrame(cells).assign(colour="violet")
    assert np.isfinite(model.predict_dist(strange).std).all()
    nothing = pd.DataFrame({name: [None] for name in cells})
    assert np.isfinite(model.predict(nothing)).all()


def test_names_on_one_side_only_match_by_position_with_a_warning(regression, regressor):
    X, y = regression
    named = regressor().fit(pd.DataFrame(X, columns=list("abc")), y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        positional = named.predict(X)
    unnamed = regressor().fit(X, y)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        np.testing.assert_array_equal(unnamed.predict(pd.DataFrame(X, columns=list("abc"))), positional)
    with pytest.raises(ValueError, match=r"X has 2 features, but \w+Regressor is expecting 3"):
        unnamed.predict(pd.DataFrame(X[:, :2]))


@pytest.mark.parametrize("make", [np.array, pd.DataFrame, lambda X: pl.DataFrame(X, schema=["a", "b", "c"])])
def test_infinities_are_rejected(regression, regressor, make):
    X, y = regression
    X = X.copy()
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="inf"):
        regressor().fit(make(X), y)


def test_duplicate_names_and_mixed_types_of_names_are_rejected(regression, regressor):
    X, y = regression
    with pytest.raises(ValueError, match="column `a`: the name appears twice"):
        regressor().fit(pd.DataFrame(X, columns=["a", "b", "a"]), y)
    with pytest.raises(TypeError, match="string names"):
        regressor().fit(pd.DataFrame(X, columns=["a", "b", 3]), y)


def test_a_table_without_columns_is_rejected(regressor):
    with pytest.raises(ValueError, match="no columns"):
        regressor().fit(pd.DataFrame(index=range(3)), [1.0, 2.0, 3.0])


def test_nested_cells_are_neither_numbers_nor_categories(regressor):
    lists = pl.DataFrame({"many": [[1, 2], [3]]})
    for table in (lists, lists.to_arrow()):
        with pytest.raises(ValueError, match=r"column `many`: .* is neither a number nor a category"):
            regressor().fit(table, [1.0, 2.0])


def test_targets_of_every_library_are_accepted(classification, classifier):
    X, y = classification
    expected = classifier().fit(X, y).predict_proba(X)
    for labels in (pd.Series(y, name="grade"), pd.Series(y, dtype="category"), pl.Series(y), pa.chunked_array([y])):
        model = classifier().fit(X, labels)
        np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_missing_targets_are_rejected_with_their_row(classification, classifier):
    X, y = classification
    labels = y.astype(object)
    labels[4] = None
    with pytest.raises(ValueError, match="column `target`, row 5: the target cell is missing"):
        classifier().fit(X, labels)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (True, "true"),
        ("FALSE", "false"),
        (3, "3"),
        (3.0, "3"),
        (0.1, "0.1"),
        (1e22, "1" + 22 * "0"),
        (1e-7, "0.0000001"),
        ("a", "a"),
    ],
)
def test_categories_have_the_text_of_the_command_line(value, name):
    assert _frame.text(value) == name


def test_a_target_with_the_name_of_a_feature_is_renamed(regressor):
    frame = pd.DataFrame({"a": np.linspace(-1, 1, 60), "b": np.arange(60) % 7})
    model = regressor().fit(frame, frame["a"] * 2)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert model.predict(frame).shape == (60,)


def test_the_memory_layout_of_an_array_does_not_matter(regressor):
    X = np.random.default_rng(0).random((2000, 5)).astype(np.float32).astype(np.float64)
    y = X @ np.arange(5.0)
    model = regressor().fit(X[:300], y[:300])
    expected = model.predict(X)
    wide = np.zeros((4000, 10))
    wide[::2, 1::2] = X
    packed = np.zeros(2000, dtype=[("x", "f8", (5,)), ("flag", "u1")])
    packed["x"] = X
    layouts = [np.asfortranarray(X), wide[::2, 1::2], X.astype(np.float32), X.astype(">f8"), X.astype(object)]
    for other in [*layouts, packed["x"], np.ascontiguousarray(X[::-1])[::-1]]:
        np.testing.assert_array_equal(model.predict(other), expected)
        again = regressor().fit(other[:300], y[:300])
        np.testing.assert_array_equal(again.predict(X), expected)
    alone = regressor().fit(X[:300, :1], y[:300])
    np.testing.assert_array_equal(alone.predict(X[:, :1]), alone.predict(np.ascontiguousarray(X[:, :1])))


def test_masked_cells_are_missing(mixed, regressor):
    cells, y = mixed
    numbers = np.array([cells["count"], [1 if cell is None else cell for cell in cells["size"]]], dtype=float).T
    mask = np.zeros(numbers.shape, dtype=bool)
    mask[::5, 0] = mask[::3, 1] = True
    with_nan = np.where(mask, np.nan, numbers)
    model = regressor().fit(with_nan, y)
    masked = np.ma.masked_array(numbers, mask=mask)
    np.testing.assert_array_equal(model.predict(masked), model.predict(with_nan))
    again = regressor().fit(masked, y)
    np.testing.assert_array_equal(again.predict(with_nan), model.predict(with_nan))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([[1], [2]]), [np.nan, 2.0]),
        (np.array([["1970-01-01"], ["1970-01-02"]], dtype="M8[D]"), [np.nan, 86400.0]),
        (np.array([["a"], ["b"]]), [_frame.MISSING, 0]),
        (np.array([["a"], ["b"]], dtype=object), [_frame.MISSING, 0]),
    ],
)
def test_masks_of_every_type_are_missing_cells(values, expected):
    masked = np.ma.masked_array(values, mask=[[True], [False]])
    table = _frame.from_array(_frame.plain_array(masked))
    found = table.values[:, 0] if not isinstance(table, list) else table[0].values
    np.testing.assert_array_equal(found, expected)
    unmasked = _frame.plain_array(np.ma.masked_array(values))
    np.testing.assert_array_equal(unmasked, values)


BIG = 2**53 + 1


@pytest.mark.parametrize(
    "table",
    [
        np.array([[1, BIG], [2, 3]]),
        np.array([[1, BIG], [2, 3]], dtype=np.uint64),
        np.array([[1, -BIG], [None, 3]], dtype=object),
        np.ma.masked_array([[1, BIG], [2, 3]], mask=[[True, False], [False, False]]),
        pd.DataFrame({"x0": [1, 2], "x1": [BIG, 3]}),
        pd.DataFrame({"x0": [1, 2], "x1": pd.Series([BIG, None], dtype="Int64")}),
        pl.DataFrame({"x0": [1, 2], "x1": [-BIG, None]}),
        pa.table({"x0": [1, 2], "x1": [BIG, None]}),
    ],
    ids=lambda table: type(table).__name__,
)
def test_integers_that_floats_round_are_named(table):
    with pytest.warns(UserWarning, match=r"column `x1` has integers of 2\*\*53 and more") as found:
        softwood.TreeRegressor()._table(table, reset=True)
    assert len(found) == 1


def test_other_numbers_are_read_without_a_warning():
    tables = [np.array([[2**53 - 1]]), np.array([[1e300]]), pd.DataFrame({"a": [2.0**60]}), pl.DataFrame({"a": [1e17]})]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for table in tables:
            softwood.TreeRegressor()._table(table, reset=True)


def series(*cells):
    return pd.DataFrame({"odd": pd.Series(list(cells), dtype=object)})


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (series({}, {}), "column `odd`, row 1: a cell of type dict"),
        (series("a", [1]), "column `odd`, row 2: a cell of type list"),
        (series(1.0, None, 1j), "column `odd`, row 3: a cell of type complex"),
        (series("a", "\ud800"), "column `odd` has the text '\\\\ud800'"),
        (series(1, 10**400), "column `odd` has an integer beyond the range"),
        (
            pd.DataFrame({"odd": pd.period_range("2020", periods=2, freq="M")}),
            "column `odd`, row 1: a cell of type Period",
        ),
        (pd.DataFrame([[1]], columns=pd.Index(["\ud800"], dtype=object)), "the name of column '\\\\ud800'"),
        (np.array([[1], [{}]], dtype=object), "column `x0`, row 2: a cell of type dict"),
        (np.array([["\ud800"]]), "column `x0` has the text"),
    ],
)
def test_cells_that_cannot_be_read_are_named(table, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        softwood.TreeRegressor()._table(table, reset=True)
