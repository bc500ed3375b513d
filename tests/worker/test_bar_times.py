from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from schemas.errors import DataError
from tests.each_case import check_each
from worker.feeds.files.times import utc_labels, zone_named
from worker.feeds.time_range import range_ns

NEW_YORK = zone_named("America/New_York")


def place(row: int) -> str:
    return f"row {row}"


def labels(values: list[Any], kind: pa.DataType | None = None, zone=None) -> list[pd.Timestamp]:
    stamps = utc_labels(pa.chunked_array([pa.array(values, kind)]), place, zone)
    assert stamps.dtype == np.int64
    return [pd.Timestamp(int(stamp), tz="UTC") for stamp in stamps]


def refusal(values: list[Any], kind: pa.DataType | None = None, zone=None) -> str:
    with pytest.raises(DataError) as caught:
        labels(values, kind, zone)
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "2012-01-03T14:30:00Z",
        "2012-01-03 14:30:00+00:00",
        "2012-01-03T15:30:00+0100",
        "2012-01-03 09:30-05",
        " 2012-01-03T14:30:00.000000000Z ",
        "1325601000",
        "1325601000000",
        "1325601000000000",
        "1325601000000000000",
    ],
)
def test_text_with_a_zone_or_an_epoch_is_utc(text):
    assert labels([text]) == [pd.Timestamp("2012-01-03T14:30", tz="UTC")]


def test_mixed_offsets_are_read():
    texts = ["2012-03-10T16:00:00-05:00", "2012-03-12T16:00:00-04:00"]
    assert [stamp.hour for stamp in labels(texts)] == [21, 20]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1325548800000], pa.timestamp("ms", "UTC")),
        ([datetime(2012, 1, 3, 5, tzinfo=UTC)], pa.timestamp("s", "America/New_York")),
        ([1325548800000], pa.int64()),
    ],
)
def test_typed_times_with_a_zone_are_utc(values, kind):
    assert labels(values, kind)[0].date() == date(2012, 1, 3)


@pytest.mark.parametrize(
    ("values", "kind", "zone", "expected"),
    [
        (["2012-01-03 09:30:00"], None, NEW_YORK, "2012-01-03T14:30"),
        (["2012-07-03 09:30:00"], None, NEW_YORK, "2012-07-03T13:30"),
        (["2012-01-03"], None, zone_named("UTC"), "2012-01-03"),
        ([1325583000], pa.timestamp("s"), NEW_YORK, "2012-01-03T14:30"),
        ([date(2012, 1, 3)], pa.date32(), zone_named("UTC"), "2012-01-03"),
    ],
)
def test_naive_times_take_the_zone_they_are_given(values, kind, zone, expected):
    assert labels(values, kind, zone) == [pd.Timestamp(expected, tz="UTC")]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (
            ["2012-01-03 09:30:00"],
            None,
            "row 0: time '2012-01-03 09:30:00' has no time zone: name the zone of the file",
        ),
        (["2012-01-03 09:30:00"], None, "--tz ZONE"),
        (["2012-01-03", "2012-01-04"], None, "row 0: time '2012-01-03' has no time zone"),
        (["2012-01-03", "2012-01-04"], None, "--tz UTC"),
        ([date(2012, 1, 3)], pa.date32(), "--tz UTC"),
        ([1325548800], pa.timestamp("s"), "--tz ZONE"),
        (
            ["2012-01-03T00:00:00Z", "2012-01-04T00:00:00"],
            None,
            "row 1: time '2012-01-04T00:00:00' has no zone where",
        ),
    ],
)
def test_naive_times_without_a_zone_name_the_option(values, kind, expected):
    assert expected in refusal(values, kind)


def test_local_times_that_do_not_exist_or_happen_twice_are_refused():
    assert "row 1: local time '2012-03-11 02:30:00' does not exist in America/New_York" in refusal(
        ["2012-03-11 01:30:00", "2012-03-11 02:30:00"], zone=NEW_YORK
    )
    assert "row 1: local time '2012-11-04 01:30:00' happens twice in America/New_York" in refusal(
        ["2012-11-04 00:30:00", "2012-11-04 01:30:00"], zone=NEW_YORK
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["2012-01-03T00:00:00Z", ""], "row 1: the time is empty"),
        (["2012-01-03T00:00:00Z", None], "row 1: the time is empty"),
        (["2012-01-03T00:00:00Z", "now"], "row 1: time 'now' is unreadable"),
        (["2012-02-30T00:00:00Z"], "row 0: time '2012-02-30T00:00:00Z' is unreadable"),
        (["03/01/2012"], "is unreadable: write ISO 8601"),
        (["20120103", "20120104"], "reads as a date without separators"),
        (["20120103093000"], "reads as a date without separators"),
        (["1325601000", "1325601000000"], "row 0: time 1325601000 is no epoch in the unit of 1325601000000"),
        (["12", "13"], "is no epoch"),
        (["9999999999999999999"], "too large for an epoch"),
        (["1500-01-01T00:00:00Z"], "outside the years 1678 to 2261"),
        (["9999-12-31T00:00:00Z"], "outside the years 1678 to 2261"),
    ],
)
def test_unusable_text_is_refused_by_its_row(values, expected):
    assert expected in refusal(values, pa.string())


def test_column_that_holds_no_times_is_refused():
    assert "the time column holds double" in refusal([1.5])
    assert "outside the years" in refusal([2**62], pa.timestamp("s", "UTC"))


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../UTC", "America"])
def test_unknown_zone_is_refused(name):
    with pytest.raises(DataError, match="is no time zone"):
        zone_named(name)


def test_range_is_utc_and_a_date_alone_means_its_day():
    day = 86_400 * 10**9
    assert range_ns("1970-01-02", "1970-01-02") == (day, 2 * day - 1)
    assert range_ns(date(1970, 1, 2), datetime(1970, 1, 2, tzinfo=UTC)) == (day, day)
    assert range_ns("1970-01-02T01:00+01:00", None) == (day, None)
    assert range_ns("0001-01-01", "9999-12-31") == (-(2**63 - 1), 2**63 - 1)


HOURS = [1_730_419_200_000 + 3_600_000 * k for k in range(40)]
STAMPS = [f"2012-01-03T{hour:02}:00:00Z" for hour in range(20)]


@check_each(
    ("values", "bad"),
    [
        (HOURS, "open_time"),
        (HOURS, "NaT"),
        (HOURS, "1730419200000.0"),
        (HOURS, "2024-11-01T00:00:00Z"),
        (HOURS, "1730419200000000"),
        (HOURS, "1730419200"),
        (HOURS, "20241101"),
        (HOURS, "9999999999999999999"),
        ([20_120_103 + k for k in range(20)], "now"),
        (STAMPS, "1730419200000"),
        (STAMPS, "2012-01-03T04:00:00"),
        ([stamp[:-1] for stamp in STAMPS], "2012-01-03T04:00:00Z"),
    ],
)
@check_each("row", [0, 7, -1])
def test_time_cell_that_is_unlike_the_others_names_its_own_row(values, bad, row):
    texts = [str(value) for value in values]
    texts[row] = bad
    assert refusal(texts).startswith(f"row {row % len(texts)}: ")
