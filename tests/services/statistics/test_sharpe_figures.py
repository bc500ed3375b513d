"""PSR, DSR and the minimum track record in reports: over sums of blocks, with a word beside the gate."""

import asyncio
from itertools import count

import numpy as np
import pytest

from benchmarks.gate_worlds.calendar import WEEK_NS
from benchmarks.gate_worlds.catalogue import world_of
from schemas.settings import GateSettings, Settings
from services.high_level_reflection_service import HighLevelReflectionService
from services.statistics.blocks import Trades
from services.statistics.sharpe import Moments, expected_best_sharpe, moments, probabilistic_sharpe
from tests.services.high_level.builders import DAY_NS, START, episode, playbook, request

BOOKS = tuple(playbook(name) for name in ("breakout", "fade", "pullback"))
LEVEL = 0.95
AFTER = START + 52 * WEEK_NS


class Grid:
    """Evaluator whose trades are a fixed draw for each value, five a week."""

    def evaluate(self, definition, parameter, value, start_ns, end_ns):
        r = np.random.default_rng(round(value * 10)).normal(value / 100.0 - 0.5, 1.0, 150)
        return Trades.of([(START + k * DAY_NS, START + k * DAY_NS, float(each)) for k, each in enumerate(r)])


def reflect(episodes, grid=None, gate=None, **changes):
    service = HighLevelReflectionService(Settings(gate=gate or GateSettings()), grid)
    changes = {"known_at": AFTER} | changes
    return asyncio.run(service.reflect(request(episodes, **changes), episodes, BOOKS))


def episodes_of(cells):
    """Trades of one cell for each playbook: rows of (entry, exit, R)."""
    number = count()
    return [
        episode(
            book,
            number=next(number),
            r=float(r),
            entry_label=int(entry),
            exit_label=int(out),
            known_at=int(out),
        )
        for book, cell in zip(BOOKS, cells, strict=False)
        for entry, out, r in zip(cell.entry_ns, cell.exit_ns, cell.r, strict=True)
    ]


def null_year(kind, given, seed):
    """The report on a year in which nothing has an edge, one cell for each playbook."""
    world = world_of(kind, given, playbooks=len(BOOKS), regimes=1)
    return reflect(episodes_of(world.draw(np.random.Generator(np.random.PCG64([6, seed])))))


def wholes(report):
    return [found for found in report.clusters if found.regime is None]


def weekly(book, sums, reference=0.0, parts=2, cells=1):
    """A trade a day whose sums over each week are given; weeks take turns in so many cells."""
    return [
        episode(
            book,
            number=len(sums) * parts * BOOKS.index(book) + week * parts + part,
            r=float(total) / parts + reference,
            regime=("up/mid", "up/low", "sideways/low", "sideways/mid")[week % cells],
            entry_label=START + week * WEEK_NS + part * DAY_NS,
            exit_label=START + week * WEEK_NS + part * DAY_NS + DAY_NS // 12,
            known_at=START + week * WEEK_NS + part * DAY_NS + DAY_NS // 12,
        )
        for week, total in enumerate(sums)
        for part in range(parts)
    ]


def of_books(*sums):
    """Weekly sums of each playbook."""
    return [trade for book, own in zip(BOOKS, sums, strict=True) for trade in weekly(book, own)]


def moments_of(sums) -> Moments:
    found = moments(sums)
    assert found is not None
    return found


def drawn(seed, mean, weeks=51):
    return np.random.default_rng(seed).normal(mean, 1.0, weeks)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("symbols", {"symbols": 6}),
        ("symbols", {"symbols": 6, "target": 3.0}),
        ("copies", {"rows_low": 4, "rows_high": 8}),
    ],
)
def test_psr_of_correlated_null_years_reaches_its_level_about_as_often_as_it_says(kind, given):
    found = [each for seed in range(25) for each in wholes(null_year(kind, given, seed))]
    assert all(each.psr is not None and each.dsr is not None for each in found)
    assert sum(each.psr >= LEVEL for each in found) <= 8, f"of {len(found)}, 3.75 expected"
    assert sum(each.psr <= 1 - LEVEL for each in found) <= 8
    assert sum(each.dsr >= LEVEL for each in found) <= 1


def test_psr_and_its_track_record_are_those_of_the_sums_of_blocks_above_the_reference():
    sums = drawn(3, 0.3)
    report = reflect(weekly(BOOKS[0], sums))
    (found,) = wholes(report)
    assert found.psr == pytest.approx(probabilistic_sharpe(moments_of(sums)), abs=1e-6)
    assert (found.n, found.blocks) == (102, 51)
    held = reflect(weekly(BOOKS[0], sums, reference=0.2), gate=GateSettings(reference_r=0.2))
    assert wholes(held)[0].psr == pytest.approx(found.psr, abs=1e-6)
    assert wholes(held)[0].minimum_track_record == pytest.approx(found.minimum_track_record, abs=1e-2)


def test_minimum_track_record_is_reached_exactly_where_psr_reaches_its_level():
    sides = set()
    for seed in range(30):
        found, *_ = wholes(reflect(weekly(BOOKS[0], drawn(seed, 0.25))))
        reached = found.minimum_track_record is not None and found.blocks >= found.minimum_track_record
        assert reached == (found.psr >= LEVEL)
        sides.add(reached)
    assert sides == {True, False}


def test_dsr_reads_the_spread_of_the_sharpe_ratios_that_were_tried():
    shown = []
    for apart in (0.0, 1.2):
        sums = drawn(3, 0.5), drawn(4, 0.5 + apart), drawn(5, 0.5 - apart)
        report = reflect(of_books(*sums))
        found = wholes(report)[0]
        tried = [moments_of(each).sharpe for each in sums]
        best = expected_best_sharpe(found.family_size, float(np.var(tried, ddof=1)))
        assert found.dsr == pytest.approx(probabilistic_sharpe(moments_of(sums[0]), best), abs=1e-5)
        shown.append(found.dsr)
    assert shown[0] > 0.5 > 0.05 > shown[1]


def test_dsr_counts_the_grid_values_that_were_tried_among_the_spread():
    sums = drawn(2, -1.5)
    report = reflect(weekly(BOOKS[0], sums, cells=4), Grid())
    sharpes = {trial.sharpe for trial in report.grid_trials}
    assert len(sharpes) > 2
    assert None not in sharpes
    found = wholes(report)[0]
    tried = [*sharpes, *(moments_of(each).sharpe for each in (sums, *(sums[cell::4] for cell in range(4))))]
    best = expected_best_sharpe(found.family_size, float(np.var(tried, ddof=1)))
    assert found.dsr == pytest.approx(probabilistic_sharpe(moments_of(sums), best), abs=1e-6)


def test_dsr_is_missing_where_one_sharpe_ratio_alone_was_measured():
    (found,) = wholes(reflect(weekly(BOOKS[0], drawn(3, 0.3))))
    assert found.family_size > 1
    assert found.psr is not None
    assert found.dsr is None


def test_psr_of_blocks_that_resemble_each_other_is_that_of_four_at_a_time_where_it_shows_less():
    first = (START // DAY_NS + 3) // 7 % 4  # weeks of a group of four that went before
    shown = set()
    for seed in range(6):
        sums = np.repeat(drawn(seed, 0.5, 6), 8) + drawn(seed + 9, 0.0, 48) / 3
        (found,) = wholes(reflect(weekly(BOOKS[0], sums)))
        assert "of them show together counts where it is less" in found.reason
        fours = np.add.reduceat(sums, sorted({0, *range(4 - first, 48, 4)}))
        values = [probabilistic_sharpe(moments_of(each)) for each in (sums, fours)]
        assert found.psr == pytest.approx(min(values, key=lambda value: abs(value - 0.5)), abs=1e-6)
        reached = found.minimum_track_record is not None and found.blocks >= found.minimum_track_record
        assert reached == (found.psr >= LEVEL)
        shown.add(found.psr == pytest.approx(values[1], abs=1e-6))
    assert True in shown


def test_psr_that_the_gate_does_not_share_stands_with_a_word_and_one_that_it_shares_without():
    seen = set()
    for seed in range(12):
        for mean in (-1.0, -0.3, 0.0, 0.3, 1.2):
            (found,) = wholes(reflect(weekly(BOOKS[0], drawn(seed, mean))))
            side = "gaining" if found.psr >= LEVEL else "losing" if found.psr <= 1 - LEVEL else None
            assert ("PSR" in found.reason) == (side != found.claim), found.reason
            seen.add((side, found.claim))
            if side and found.claim is None:
                assert "of one look is no proof: E counts every look and all that is tested" in found.reason
                assert f"PSR {found.psr:.3f}" in found.reason
    assert {(None, None), ("gaining", None), ("losing", None), ("gaining", "gaining")} <= seen


def test_dsr_below_its_level_stands_with_a_word_where_the_gate_proves_a_gain():
    sums = drawn(3, 1.2), drawn(4, 4.0), drawn(5, -4.0)
    report = reflect(of_books(*sums))
    found = wholes(report)[0]
    assert found.claim == "gaining"
    assert found.psr >= LEVEL > found.dsr
    assert f"(DSR {found.dsr:.3f}) of one look falls short of 0.95 for gaining" in found.reason
