import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.journal.chain import GENESIS_HASH, ChainReport, JournalRow, check_chain, relink
from tests.services.journal.rows import stream, written_rows

ROWS = written_rows(12)
OTHER: dict[str, st.SearchStrategy[Any]] = {
    "seq": st.integers(0, 50),
    "ts_event": st.integers(-(2**62), 2**62),
    "known_at": st.integers(-(2**62), 2**62),
    "kind": st.sampled_from(["genesis", "error", "exit_filled"]),
    "symbol": st.sampled_from([None, "IBM", "AAPL "]),
    "payload": st.text(max_size=40),
    "prev_hash": st.text("0123456789abcdef", min_size=64, max_size=64),
    "hash": st.text("0123456789abcdef", min_size=64, max_size=64),
}


def checked(rows: Sequence[JournalRow], of: Sequence[JournalRow] = ROWS) -> ChainReport:
    head = of[-1].hash if of else GENESIS_HASH
    return asyncio.run(check_chain(stream(rows), events=len(of), head_hash=head))


def test_chain_untouched_rows_hold():
    assert checked(ROWS) == ChainReport(True, len(ROWS), ROWS[-1].hash)


def test_chain_no_rows_of_an_empty_run_hold():
    assert checked([], of=[]).ok


@given(st.data(), st.integers(0, len(ROWS) - 1), st.sampled_from(sorted(OTHER)))
def test_chain_any_changed_field_is_found(data, at, name):
    value = data.draw(OTHER[name].filter(lambda value: value != getattr(ROWS[at], name)))
    rows = [*ROWS[:at], replace(ROWS[at], **{name: value}), *ROWS[at + 1 :]]
    report = checked(rows)
    assert not report.ok
    assert report.seq == at


@given(st.integers(0, len(ROWS) - 1), st.integers(0, 10_000))
def test_chain_any_changed_payload_byte_is_found(at, position):
    payload = ROWS[at].payload
    k = position % len(payload)
    changed = payload[:k] + chr(ord(payload[k]) ^ 1) + payload[k + 1 :]
    assert not checked([*ROWS[:at], replace(ROWS[at], payload=changed), *ROWS[at + 1 :]]).ok


@given(st.integers(0, len(ROWS) - 1))
def test_chain_row_rewritten_with_a_fitting_hash_is_found(at):
    changed = replace(ROWS[at], payload='{"n":-1}')
    report = checked([*ROWS[:at], replace(changed, hash=relink(changed)), *ROWS[at + 1 :]])
    assert not report.ok


@given(st.integers(0, len(ROWS) - 1))
def test_chain_dropped_row_is_found(at):
    report = checked([*ROWS[:at], *ROWS[at + 1 :]])
    assert not report.ok
    assert report.problem


@given(st.permutations(range(len(ROWS))).filter(lambda order: list(order) != list(range(len(ROWS)))))
def test_chain_other_order_is_found(order):
    assert not checked([ROWS[k] for k in order]).ok


def test_chain_added_row_is_found():
    assert "12 rows were recorded and 13 are stored" in (checked(written_rows(13)).problem or "")


def test_chain_of_another_run_is_not_the_recorded_head():
    assert checked(written_rows(12, seed=1)).problem == "the last row is not the recorded head of the chain"


@pytest.mark.parametrize("telemetry", [None, '{"latency_ms":99.0}'])
def test_chain_telemetry_is_not_hashed(telemetry):
    assert checked([replace(row, telemetry=telemetry) for row in ROWS]).ok
