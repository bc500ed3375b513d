"""Typed claims against a table of the same trades made without them: no wrong verdict on either side."""

import random
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import Any, get_args

import pandas as pd
import pytest
from pydantic import TypeAdapter, ValidationError

from schemas.claims import Claim, MeasureName, Of, Section
from schemas.vocabulary import EvidenceGrade, ExitReason, FailureMode, RecommendedAction
from services.claims.check import ClaimResult, Refusal, check
from services.claims.measures import MEASURES, Figure
from services.claims.sections import keep_comment, rename_symbols, render, text_of, write_sections
from tests.each_case import check_each
from tests.services.deliberation.recorded import WHOLE, whole

RUNS = WHOLE
EACH = 50
READ = TypeAdapter[Any](Claim)
COLUMNS = {"playbook": "playbook_id", "symbol": "symbol", "regime": "regime", "direction": "direction",
           "exit_reason": "exit_reason", "failure_mode": "failure_mode"}  # fmt: skip
# What each measure comes to, reckoned from a table of the trades; digits as the page of a run shows them.
PLAIN: dict[str, tuple[Callable[[pd.DataFrame], float], int]] = {
    "trades": (len, 0),
    "winners": (lambda t: (t.r > 0).sum(), 0),
    "losers": (lambda t: (t.r < 0).sum(), 0),
    "win_rate": (lambda t: 100 * (t.r > 0).mean(), 1),
    "mean_r": (lambda t: t.r.mean(), 2),
    "median_r": (lambda t: t.r.median(), 2),
    "total_r": (lambda t: t.r.sum(), 1),
    "best_r": (lambda t: t.r.max(), 2),
    "worst_r": (lambda t: t.r.min(), 2),
    "hold_mean": (lambda t: t.hold_bars.mean(), 1),
    "hold_p50": (lambda t: t.hold_bars.median(), 1),
    "pnl": (lambda t: t.pnl.sum(), 2),
    "fees": (lambda t: t.fees.sum(), 2),
    "mean_mae": (lambda t: t.mae_r.mean(), 2),
}
SIGNED = ("mean_r", "median_r", "total_r", "pnl")


@cache
def table(run: str) -> pd.DataFrame:
    """The trades of a run, one a row."""
    trades = pd.DataFrame([known.episode.payload() for known in whole(run).episodes])
    trades["year"] = pd.to_datetime(trades.entry_label, utc=True).dt.year.astype(str)
    trades["outcome"] = trades.r.map(lambda r: "won" if r > 0 else "lost" if r < 0 else None)
    return trades


def chosen(run: str, of: Mapping[str, Any]) -> pd.DataFrame:
    """The trades of a subject, by columns of the table."""
    trades = table(run)
    for name, value in of.items():
        trades = trades[trades["year" if name == "period" else COLUMNS.get(name, name)] == value]
    return trades


def value(run: str, measure: str, of: Mapping[str, Any]) -> Decimal | None:
    """A measure of a subject as it is shown; None where it has none, or lies between two figures."""
    trades, (reckon, digits) = chosen(run, of), PLAIN[measure]
    if trades.empty:
        return None
    found = float(f"{float(reckon(trades)):.11g}")
    near = abs(found * 10**digits % 1 - 0.5)
    return None if near < 1e-6 else round(Decimal(repr(found)), digits)


def draw_of(rng: random.Random, run: str) -> dict[str, Any]:
    """A subject that has trades."""
    trade = table(run).sample(1, random_state=rng.randrange(2**31)).iloc[0]
    names = rng.sample(
        ["playbook", "symbol", "regime", "direction", "exit_reason", "outcome", "period"], rng.randint(0, 2)
    )
    of = {name: trade["year" if name == "period" else COLUMNS.get(name, name)] for name in names}
    return {name: item for name, item in of.items() if item is not None}


def draw_value(rng: random.Random, run: str) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    measure, of = rng.choice(list(PLAIN)), draw_of(rng, run)
    shown = value(run, measure, of)
    if shown is None:
        return None
    unit = Decimal(1).scaleb(-PLAIN[measure][1])
    true = {"kind": "value", "measure": measure, "of": of, "stated": f"{shown:f}"}
    false = [true | {"stated": f"{shown + sign * unit:f}"} for sign in (1, -1)]
    other = draw_of(rng, run)
    if value(run, measure, other) not in (None, shown):
        false.append(true | {"of": other})
    return true, false


def draw_share(rng: random.Random, run: str) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    whole_of, part = draw_of(rng, run), draw_of(rng, run)
    part = {name: item for name, item in part.items() if name not in whole_of}
    count, of_all = len(chosen(run, {**whole_of, **part})), len(chosen(run, whole_of))
    if not part or not of_all:
        return None
    true = {"kind": "share", "part": part, "whole": whole_of, "stated": str(count)}
    near = abs(1000 * count / of_all % 1 - 0.5) < 1e-6
    shown = round(Decimal(repr(float(f"{100 * count / of_all:.11g}"))), 1)
    percent = true | {"stated": f"{shown}%"}
    return (true if near or rng.random() < 0.5 else percent), [
        true | {"stated": str(count + 1)},
        *([] if near else [true | {"stated": f"{shown + Decimal('0.1')}%"}]),
    ]


def draw_compare(rng: random.Random, run: str) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    measure, left, right = rng.choice(list(PLAIN)), draw_of(rng, run), draw_of(rng, run)
    one, two = value(run, measure, left), value(run, measure, right)
    if one is None or two is None:
        return None
    relation = "same" if one == two else "more" if one > two else "less"
    true = {"kind": "compare", "measure": measure, "left": left, "relation": relation, "right": right}
    turned = {"more": "less", "less": "more", "same": "more"}[relation]
    false = [true | {"relation": turned}, true | {"relation": "more" if relation == "same" else "same"}]
    return true, false if relation == "same" else [*false, true | {"left": right, "right": left}]


def draw_rank(rng: random.Random, run: str) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    measure, within = rng.choice(list(PLAIN)), draw_of(rng, run)
    by = rng.choice([name for name in ("playbook", "symbol", "regime", "year") if name not in within])
    if by == "year" and "period" in within:
        return None
    column = COLUMNS.get(by, by)
    figures = {
        str(name): value(run, measure, {**within, ("period" if by == "year" else by): name})
        for name in sorted(chosen(run, within)[column].dropna().unique())
    }
    if len(figures) < 3 or None in figures.values():
        return None
    without = rng.sample(sorted(figures), rng.randint(0, 1))
    order = sorted(
        (figure, name) for name, figure in figures.items() if name not in without and figure is not None
    )
    place, lowest = rng.randint(1, len(order)), rng.random() < 0.5
    ranked = order if lowest else order[::-1]
    figure, who = ranked[place - 1]
    if sum(other == figure for other, _ in order) > 1:
        return None
    true = {"kind": "rank", "measure": measure, "by": by, "who": who, "place": place, "within": within,
            "counted_from": "lowest" if lowest else "highest", "without": without}  # fmt: skip
    false = [true | {"who": name} for _, name in ranked if name != who]
    if 2 * place != len(order) + 1:
        false.append(true | {"counted_from": "highest" if lowest else "lowest"})
    return true, [*false, true | {"place": place + 1}]


def draw_every(rng: random.Random, run: str) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    measure, within = rng.choice(list(PLAIN)), draw_of(rng, run)
    by = rng.choice([name for name in ("playbook", "symbol", "regime") if name not in within])
    figures = {
        str(name): value(run, measure, {**within, by: name})
        for name in sorted(chosen(run, within)[COLUMNS[by]].dropna().unique())
    }
    known = [figure for figure in figures.values() if figure is not None]
    if len(known) < 2 or len(known) < len(figures):
        return None
    bound = rng.choice(known)
    but = [name for name, figure in figures.items() if figure is not None and figure <= bound]
    if len(but) == len(figures):
        return None
    true = {"kind": "every", "measure": measure, "by": by, "relation": "above", "bound": f"{bound:f}",
            "within": within, "but": but}  # fmt: skip
    kept = sorted(set(figures) - set(but))
    false = [true | {"but": but[1:]}, true | {"relation": "below"}]
    return true, [*false, true | {"but": [*but, kept[0]]}] if len(kept) > 1 else false


def draw_sign(rng: random.Random, run: str) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    measure, of = rng.choice(SIGNED), draw_of(rng, run)
    shown = value(run, measure, of)
    if shown is None:
        return None
    sign = "positive" if shown > 0 else "negative" if shown < 0 else "zero"
    true = {"kind": "sign", "measure": measure, "of": of, "sign": sign}
    return true, [true | {"sign": other} for other in ("positive", "negative", "zero") if other != sign]


def draw_grade(rng: random.Random, run: str) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    report = whole(run).report
    if report is None:
        return None
    finding = rng.choice([item for item in report.clusters if item.timeframe is None])
    of = {"playbook": finding.playbook_id} | ({"regime": finding.regime} if finding.regime else {})
    true = {"kind": "grade", "of": of, "grade": finding.grade.value}
    return true, [true | {"grade": grade.value} for grade in EvidenceGrade if grade != finding.grade]


def draw_advice(rng: random.Random, run: str) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
    report = whole(run).report
    if report is None:
        return None
    item = rng.choice(report.recommendations)
    of = {name: held for name, held in (("playbook", item.playbook_id), ("regime", item.regime)) if held}
    same = {
        r.action
        for r in report.recommendations
        if (r.playbook_id, r.regime) == (item.playbook_id, item.regime)
    }
    true = {"kind": "advice", "action": item.action.value, "of": of}
    return true, [true | {"action": action.value} for action in RecommendedAction if action not in same]


DRAWS = {"value": draw_value, "share": draw_share, "compare": draw_compare, "rank": draw_rank,
         "every": draw_every, "sign": draw_sign, "grade": draw_grade, "advice": draw_advice}  # fmt: skip


REPORTED = {"grade": {"grade": "count_only"}, "advice": {"action": "hold"}}  # a run without a report has none


def drawn(kind: str, run: str, seed: int) -> Iterator[tuple[bool, dict[str, Any]]]:
    """As many true and false claims of a kind as are asked for."""
    rng = random.Random(f"{kind} {run} {seed}")
    true: list[dict[str, Any]] = []
    false: list[dict[str, Any]] = []
    for _ in range(100 * EACH):
        found = DRAWS[kind](rng, run)
        if found is not None:
            true.append(found[0])
            false.append(rng.choice(found[1]))
        if len(true) >= EACH:
            break
    yield from ((True, claim) for claim in true)
    yield from ((False, claim) for claim in false)


@check_each("run", RUNS)
@check_each("kind", DRAWS)
def test_typed_claims_drawn_from_a_run_get_no_wrong_verdict(kind: str, run: str):
    facts, claims = whole(run), list(drawn(kind, run, 1))
    if facts.report is None and kind in REPORTED:
        assert isinstance(
            check(READ.validate_python({"kind": kind, "of": {}} | REPORTED[kind]), facts), Refusal
        )
        return
    assert len(claims) == 2 * EACH
    wrong = []
    for is_true, plain in claims:
        claim = READ.validate_python(plain)
        result = check(claim, facts)
        if isinstance(result, ClaimResult) != is_true:
            wrong.append((is_true, plain, result))
        elif isinstance(result, ClaimResult):
            assert render(claim, result).endswith(".")
    assert wrong == []


def test_every_measure_has_one_row_of_the_table_and_every_kind_its_words():
    assert set(MEASURES) == set(get_args(MeasureName))
    kinds = {get_args(variant.model_fields["kind"].annotation)[0] for variant in get_args(get_args(Claim)[0])}
    assert kinds == set(DRAWS)


@pytest.mark.parametrize(
    ("plain", "so"),
    [
        ({"kind": "value", "measure": "mean_r", "of": {"playbook": "chanel_breakout"}}, "Did you mean"),
        ({"kind": "value", "measure": "mean_r", "of": {"symbol": "TSLA"}}, "the run has no symbol 'TSLA'"),
        ({"kind": "value", "measure": "mean_r", "of": {"period": "2004-13"}}, "'2004-13' is no period"),
        ({"kind": "value", "measure": "mean_r", "of": {"period": "2005/2004"}}, "ends before it begins"),
        ({"kind": "value", "measure": "mean_r", "of": {"period": "1970"}}, "the mean R of trades in 1970"),
        ({"kind": "value", "measure": "sharpe", "of": {"symbol": "AAPL"}}, "the Sharpe ratio of AAPL"),
        ({"kind": "share", "part": {"symbol": "IBM"}, "whole": {"symbol": "AAPL"}}, "lies outside of symbol"),
        ({"kind": "sign", "measure": "hold_mean", "of": {}, "sign": "positive"}, "has no sign"),
        ({"kind": "rank", "measure": "trades", "by": "symbol", "who": "TSLA"}, "is not ranked among AAPL"),
        ({"kind": "grade", "of": {"symbol": "AAPL"}, "grade": "count_only"}, "no report has graded AAPL"),
        ({"kind": "value", "measure": "mean_r", "of": {"symbol": "MSFT"}, "stated": "0.05"}, "is -0.05R"),
        ({"kind": "rank", "measure": "trades", "by": "outcome", "who": "lost", "within": {"outcome": "won"}},
         "'lost' is not ranked among won"),
        ({"kind": "rank", "measure": "trades", "by": "year", "who": "2004", "within": {"period": "2004-06"}},
         "does not hold the whole of 2004"),
        ({"kind": "every", "measure": "mean_r", "by": "symbol", "relation": "above", "bound": "5",
          "but": ["AAPL", "FB", "GOOG", "IBM", "MSFT", "MSFT"]}, "symbol 'MSFT' is left out twice"),
        ({"kind": "share", "part": {"period": "2005"}, "whole": {"period": "2004"}}, "lies outside of per"),
    ],
)  # fmt: skip
def test_claim_that_is_not_so_is_refused_with_what_is(plain: dict[str, Any], so: str):
    refusal = check(READ.validate_python(plain), whole("whole_embedded"))
    assert isinstance(refusal, Refusal)
    assert so in refusal.so


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        ({"kind": "rank", "measure": "trades", "by": "year", "who": "2005",
          "within": {"period": "2003/2005"}},
         "2005 had the highest number of trades of the years with trades in trades in 2003 to 2005: 23."),
        ({"kind": "share", "part": {"period": "2004-06"}, "whole": {"period": "2004"}},
         "1 of 18 trades (trades in 2004) were entered in 2004-06: 5.6 %."),
        ({"kind": "rank", "measure": "profit_factor", "by": "symbol", "who": "AAPL", "without": ["FB"]},
         "AAPL had the highest profit factor in R of the symbols with trades without FB: 2.28."),
        ({"kind": "every", "measure": "profit_factor", "by": "symbol", "relation": "above", "bound": "0.5",
          "but": ["FB"]}, "Every symbol with trades but FB had a profit factor in R above 0.5."),
        ({"kind": "every", "measure": "mean_r", "by": "playbook", "within": {"symbol": "FB"},
          "relation": "above", "bound": "0"}, "Every playbook with trades in FB had a mean R above 0."),
    ],
)  # fmt: skip
def test_claim_on_members_speaks_of_those_that_have_trades(plain: dict[str, Any], words: str):
    claim, facts = READ.validate_python(plain), whole("whole_embedded")
    result = check(claim, facts)
    assert isinstance(result, ClaimResult)
    assert render(claim, result) == words


@pytest.mark.parametrize(
    "plain",
    [
        {"kind": "value", "measure": "luck"},
        {"kind": "value", "measure": "mean_r", "of": {"exit_reason": "boredom"}},
        {"kind": "value", "measure": "mean_r", "of": {"period": "last June"}},
        {"kind": "value", "measure": "mean_r", "stated": "0.1R"},
        {"kind": "value", "measure": "mean_r", "note": "and it will go on"},
        {"kind": "opinion", "text": "strong"},
    ],
)
def test_claim_outside_the_closed_sets_cannot_be_written(plain: dict[str, Any]):
    with pytest.raises(ValidationError):
        READ.validate_python(plain)


def test_statement_of_a_section_has_every_row_of_its_claim():
    facts = whole("whole_embedded")
    claim = READ.validate_python({"kind": "compare", "measure": "mean_r", "left": {"symbol": "AAPL"},
                                  "relation": "more", "right": {"symbol": "MSFT"}})  # fmt: skip
    result = check(claim, facts)
    assert isinstance(result, ClaimResult)
    written = write_sections([Section(topic="any", claims=(claim,))], facts)
    assert written.sections[0].statements[0].rows == result.rows
    assert len(result.rows) == 4, "the first and the last trade of either side"


def test_sections_keep_what_holds_and_count_what_does_not():
    facts = whole("whole_embedded")
    true = {"kind": "sign", "measure": "total_r", "of": {"symbol": "MSFT"}, "sign": "negative"}
    false = true | {"sign": "positive"}
    given = [
        Section.model_validate({"topic": "symbols", "claims": [true, false], "comment": "Weak."}),
        Section.model_validate({"topic": "none", "claims": [], "comment": "AAPL was strong."}),
    ]
    text = write_sections(given, facts)
    assert text_of(text.sections) == text.text == "symbols:\n- The total R of MSFT was negative: -3.6R."
    assert [refused.so for refused in text.refused] == ["the total R of MSFT is -3.6R"]
    assert (text.accuracy, text.dropped_comments) == (0.5, 1)
    assert [section.comment for section in text.sections] == ["Weak.", None]
    assert all(row.seq for row in text.sections[0].statements[0].rows)


@check_each(
    ("comment", "stays"),
    [("A quiet window.", True), ("Gains of 3R.", False), ("Up ٣ times.", False), ("AAPL leads.", False),
     ("aapl leads.", True), ("channel_breakout earns.", False), ("In up/mid it earns.", False),
     ("x" * 301, False), (" ", False), (None, False),
     ("It made ½ of an R.", False), ("Ⅷ wins.", False), ("It made 一百 R.", False), ("㊿ of them.", False),
     ("Up 〇 times.", False), ("ＡＡＰＬ lost ninety.", False), ("AÁPL leads.", False),
     ("A̲APL leads.", False), ("A.A.P.L. leads.", False),
     ("A A P L leads.", False), ("A\u200bAPL leads.", False),
     ("AAPL_ lost and more.", False), ("AAPLs are good.", False), ("channel_breakouts are proven.", False),
     ("Channel breakout is a channel breakout.", False), ("Up midway.", True), ("up midway.", False)],
)  # fmt: skip
def test_comment_with_a_figure_or_a_name_of_the_run_is_dropped(comment: str | None, stays: bool):
    assert (keep_comment(comment, whole("whole_embedded")) is not None) == stays


def test_symbols_of_anonymised_claims_get_their_names_back_wherever_a_claim_has_one():
    claims = [
        {"kind": "compare", "measure": "pnl", "relation": "more", "left": {"symbol": "asset_1"},
         "right": {"symbol": "asset_2"}},
        {"kind": "rank", "measure": "pnl", "by": "symbol", "who": "asset_1", "without": ["asset_2"]},
        {"kind": "rank", "measure": "pnl", "by": "playbook", "who": "asset_1"},
        {"kind": "every", "measure": "pnl", "by": "symbol", "relation": "above", "bound": "0",
         "but": ["asset_2"]},
    ]  # fmt: skip
    given = [Section.model_validate({"topic": "t", "claims": claims})]
    (section,) = rename_symbols(given, {"asset_1": "AAPL", "asset_2": "IBM"})
    compared, ranked, playbook, every = (claim.payload() for claim in section.claims)
    assert (compared["left"]["symbol"], compared["right"]["symbol"]) == ("AAPL", "IBM")
    assert (ranked["who"], ranked["without"], playbook["who"], every["but"]) == (
        "AAPL",
        ["IBM"],
        "asset_1",
        ["IBM"],
    )


@pytest.mark.parametrize(
    ("value", "unit", "digits", "text"),
    [(0.185, "r", 2, "+0.18R"), (-0.004, "r", 2, "0.00R"), (0.4425, "share", 1, "44.2 %"),
     (1512, "count", 0, "1,512"), (2907.8249, "money", 2, "2,907.82"), (9.7, "bars", 1, "9.7 bars")],
)  # fmt: skip
def test_figure_is_shown_with_its_unit_and_zero_has_no_sign(value: float, unit: Any, digits: int, text: str):
    assert Figure(value, unit, digits).text == text


def test_figure_of_many_digits_is_shown_to_its_last_one():
    assert Figure(98_765_432_109.87, "money", 2).text == "98,765,432,109.87"


def test_figure_that_lies_between_two_is_stated_by_either():
    figure = Figure(0.4425, "share", 1)
    stated = ["44.2", "44.3", "44", "44.4", "44.20", "44.25"]
    assert [figure.is_stated_by(text) for text in stated] == [True, True, True, False, False, True]


def test_subject_in_words_names_each_of_its_parts():
    of = Of(playbook="p", symbol="S", regime="up/mid", direction="short", outcome="lost",
            exit_reason=ExitReason.STOP, failure_mode=FailureMode.CHOP, period="2004/2005-06")  # fmt: skip
    claim = READ.validate_python({"kind": "value", "measure": "trades", "of": of})
    words = render(claim, ClaimResult((Figure(3, "count", 0),), ()))
    assert words == (
        "The number of losing shorts of p in S in up/mid that ended by stop and failed as chop in "
        "2004 to 2005-06 was 3."
    )
