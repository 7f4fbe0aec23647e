"""Dates, timestamps and durations: seconds for every library and unit, the same numbers as in a file."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from test_frames import columns_of
from test_round_trip import run

from softwood import TreeRegressor

DAY = 86_400.0


def only_column(table):
    (column,) = columns_of(table)
    assert column.levels is None
    return column.values


def seconds_of(moment):
    """Return the seconds since 1970 without NumPy."""
    return (moment - datetime.datetime(1970, 1, 1)) / datetime.timedelta(seconds=1)


def test_an_instant_has_the_same_bits_in_every_unit_and_library():
    rng = np.random.default_rng(0)
    micros = rng.integers(-(2**50), 2**50, 1000)
    moments = micros.astype("M8[us]")
    expected = micros / 1e6
    frames = [pd.DataFrame({"t": moments.astype(f"M8[{unit}]")}) for unit in ("us", "ns")]
    for frame in frames:
        for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), moments[:, None]):
            np.testing.assert_array_equal(only_column(table), expected, err_msg=f"{type(table)}")


def test_timestamps_dates_times_and_durations_are_seconds():
    moments = pd.Series(pd.to_datetime(["1970-01-01 00:00:01.5", None, "1970-01-03"], format="ISO8601"))
    durations = moments - pd.Timestamp("1970-01-01")
    frame = pd.DataFrame({"moment": moments, "zoned": moments.dt.tz_localize("UTC"), "duration": durations})
    polars = pl.from_pandas(frame)
    for table in (frame, frame.convert_dtypes(dtype_backend="pyarrow"), polars, pa.Table.from_pandas(frame)):
        for name, cells, levels in columns_of(table):
            np.testing.assert_array_equal(cells, [1.5, np.nan, 2 * DAY], err_msg=f"{type(table)} {name}")
            assert levels is None
    days = polars.select(pl.col("moment").dt.date().alias("day"))
    wide = pa.table({"day": days.to_arrow()["day"].cast(pa.date64())})
    for table in (days, days.to_arrow(), wide):
        np.testing.assert_array_equal(only_column(table), [0.0, np.nan, 2 * DAY])
    times = pl.DataFrame({"time": polars["moment"].dt.time()})
    for table in (times, times.to_arrow()):
        np.testing.assert_array_equal(only_column(table), [1.5, np.nan, 0.0])


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_timestamps_of_pandas_do_not_wrap_around_outside_of_the_range_of_nanoseconds(unit):
    moments = [datetime.datetime(1, 1, 1), datetime.datetime(1600, 2, 29), datetime.datetime(9999, 12, 31, 12)]
    expected = [seconds_of(moment) for moment in moments]
    plain = pd.Series(np.array(moments, dtype=f"M8[{unit}]"))
    np.testing.assert_array_equal(only_column(pd.DataFrame({"a": plain})), expected)
    later = plain[1:].dt.tz_localize("UTC").dt.tz_convert("Etc/GMT-3")
    np.testing.assert_array_equal(only_column(pd.DataFrame({"a": later})), expected[1:])
    long = pd.Series(np.array([-(10**9), 10**11], dtype="m8[s]").astype(f"m8[{unit}]"))
    np.testing.assert_array_equal(only_column(pd.DataFrame({"a": long})), [-1e9, 1e11])


UNITS = {
    "W": 7 * DAY,
    "D": DAY,
    "6h": 6 * 3600.0,
    "h": 3600.0,
    "m": 60.0,
    "10s": 10.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    "ps": 1e-12,
    "fs": 1e-15,
    "as": 1e-18,
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_arrays_of_every_unit_have_one_meaning(kind, unit):
    table = np.array([[-3], [0], [8]]).astype(f"{kind}[{unit}]")
    np.testing.assert_allclose(only_column(table), np.array([-3, 0, 8]) * UNITS[unit], rtol=1e-15)
    table[1] = "NaT"
    np.testing.assert_array_equal(np.isnan(only_column(table)), [False, True, False])


def test_arrays_of_months_and_years_begin_with_their_first_day():
    for unit, days in [("M", 31 + 28 + 31), ("Y", 365 + 365 + 366)]:
        table = np.array([[0], [3], [0]]).astype(f"M8[{unit}]")
        table[2] = "NaT"
        np.testing.assert_array_equal(only_column(table), [0, days * DAY, np.nan])


def test_arrays_of_far_years_do_not_wrap_around():
    years = np.array([[0], [2_000_000]]).astype("M8[Y]")
    np.testing.assert_allclose(only_column(years), [0, 1_998_030 * 365.2425 * DAY], rtol=1e-3)
    assert only_column(np.array([[2**62]]).astype("M8[s]")) == [2.0**62]
    with pytest.raises(ValueError, match="column `x0`: dates beyond the range"):
        only_column(np.array([[2**60]]).astype("M8[Y]"))


def test_durations_without_a_length_are_rejected():
    for spans in (np.array([[1]], dtype="m8[Y]"), np.array([[1]], dtype="m8[M]"), np.array([[1]], dtype="m8")):
        with pytest.raises(ValueError, match=r"column `x0`: .*convert"):
            only_column(spans)


def test_objects_and_categories_are_the_same_numbers():
    utc = datetime.timezone.utc
    for cells, expected in [
        ([datetime.date(1970, 1, 2), None], DAY),
        ([datetime.datetime(1970, 1, 2), pd.NaT], DAY),
        ([datetime.datetime(1970, 1, 2, tzinfo=utc), None], DAY),
        ([pd.Timestamp("1970-01-02 09:00", tz="Asia/Tokyo"), None], DAY),
        ([np.datetime64("1970-01-02"), np.datetime64("NaT")], DAY),
        ([datetime.timedelta(days=1), None], DAY),
        ([pd.Timedelta("1D"), None], DAY),
        ([datetime.time(1, 1, 1, 500_000), None], 3661.5),
    ]:
        column = np.fromiter(cells, dtype=object, count=2)
        for table in (pd.DataFrame({"a": pd.Series(column, dtype=object)}), column[:, None]):
            np.testing.assert_array_equal(only_column(table), [expected, np.nan], err_msg=str(cells))
    days = pd.to_datetime(["1970-01-02", None, "1970-01-02"])
    coded = pa.table({"a": pa.array(days).dictionary_encode()})
    for table in (pd.DataFrame({"a": pd.Categorical(days)}), coded):
        np.testing.assert_array_equal(only_column(table), [DAY, np.nan, DAY])
    with pytest.raises(TypeError, match="column `a` mixes cells of type date, timedelta"):
        only_column(pd.DataFrame({"a": pd.Series([datetime.date(1970, 1, 2), datetime.timedelta(1)], dtype=object)}))


def test_a_target_of_dates_is_in_seconds_too():
    X = np.arange(40.0)[:, None]
    expected = TreeRegressor(random_state=0).fit(X, X[:, 0] * DAY).predict(X)
    for y in (np.arange(40).astype("M8[D]"), pd.Series(np.arange(40).astype("m8[D]").astype("m8[s]"))):
        np.testing.assert_array_equal(TreeRegressor(random_state=0).fit(X, y).predict(X), expected)


def test_the_command_line_reads_the_same_numbers_from_a_file(tmp_path):
    rng = np.random.default_rng(0)
    moments = pd.Series(rng.integers(-(10**11), 10**11, 200).astype("M8[s]"))
    frame = pd.DataFrame(
        {
            "moment": moments,
            "fine": pd.Series(rng.integers(0, 10**18, 200).astype("M8[ns]")),
            "zoned": moments.dt.tz_localize("UTC").dt.tz_convert("Etc/GMT-3"),
            "duration": pd.Series(rng.integers(0, 10**9, 200).astype("m8[ms]")),
        }
    )
    frame.loc[3, "moment"] = pd.NaT
    y = rng.normal(size=200) + 1e-11 * moments.astype(np.int64) + 1e-6 * frame["duration"].astype(np.int64)
    model = TreeRegressor(random_state=0).fit(frame, y)
    model.save(tmp_path / "model.softwood")
    frame.to_parquet(tmp_path / "rows.parquet", index=False)
    run("predict", tmp_path / "model.softwood", tmp_path / "rows.parquet", "-o", tmp_path / "answers.csv")
    expected = model.predict(frame)
    assert len(np.unique(expected)) > 3
    np.testing.assert_allclose(pd.read_csv(tmp_path / "answers.csv")["mean"], expected, rtol=1e-12)
