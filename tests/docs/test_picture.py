"""The picture shows every row of the run it is drawn from, and is an SVG that can be read."""

import xml.etree.ElementTree as ElementTree
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pytest

from tests.worker.shared_runs import embedded_bars
from tools.draw_run import GAIN, LOSS, REPORT, Drawn, hold_curve, picture, ticks, years
from trading_core.accounting import buy_and_hold_return

SVG = "{http://www.w3.org/2000/svg}"


def drawn(trades: list[tuple[float, float]], reports: list[float]) -> Drawn:
    return Drawn(
        title="Account & hold",
        subtitle="two years",
        times=[2003.0, 2003.5, 2004.0, 2005.0],
        account=[1.0, 1.1, 0.9, 1.2],
        hold=[1.0, 0.8, 1.3, 2.1],
        frozen=Counter({"2003-02": 3, "2004-11": 1}),
        trades=trades,
        reports=reports,
    )


def test_picture_has_a_stem_for_every_trade_and_a_mark_for_every_report():
    text = picture(drawn([(2003.2, 1.5), (2003.9, -1.0), (2004.4, -0.2)], [2003.8, 2004.6]))
    stems = [one.get("stroke") for one in ElementTree.fromstring(text).iter(f"{SVG}polyline")]
    assert (stems.count(GAIN), stems.count(LOSS)) == (1, 2)
    assert sum(one.get("fill") == REPORT for one in ElementTree.fromstring(text).iter(f"{SVG}path")) == 2


def test_picture_of_a_run_without_trades_or_reports_is_still_a_picture():
    root = ElementTree.fromstring(picture(drawn([], [])))
    title = root.find(f"{SVG}title")
    assert title is not None
    assert title.text == "Account & hold. two years"


def test_hold_curve_ends_at_buy_and_hold_without_costs():
    bars = embedded_bars("2012-01-03", "2012-12-31")
    curve = hold_curve(bars)
    assert curve[-1] == pytest.approx(1.0 + buy_and_hold_return(bars, 0.0), rel=1e-12)
    assert np.isfinite(curve).all()


def test_years_of_a_time_is_the_share_of_its_year():
    assert years(datetime(2004, 7, 2, tzinfo=UTC)) == pytest.approx(2004.5, abs=1e-9)


def test_ticks_of_a_range_are_round_and_inside():
    assert ticks(0.66, 7.0) == [1.0, 2.0, 5.0]
    assert ticks(1.01, 1.9) == [1.01, 1.9]
