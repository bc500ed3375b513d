"""Rows of a store as an index keeps them: texts, parsed when they are looked at, and forgotten in time."""

import hashlib
import json
from typing import Any

import pytest

from schemas.canonical import canonical_json
from schemas.errors import StoreError
from services.journal.chain import JournalRow, link
from services.journal.index import JournalIndex, RecentRows, RowIds, StoredEvent


def row(seq, payload, kind="entry_filled"):
    return JournalRow(seq, seq, seq, kind, "AAPL", payload, '{"ms":1}', "a" * 64, "b" * 64)


def stored(payloads, parsed=None, kind="entry_filled"):
    kept = RecentRows() if parsed is None else parsed
    return [StoredEvent(row(seq, payload, kind), kept) for seq, payload in enumerate(payloads)]


def test_payloads_that_were_parsed_last_are_kept_up_to_a_length():
    texts = [json.dumps({"fill_id": f"f{n}", "x": "y" * 80}) for n in range(10)]
    parsed = RecentRows(most=3 * len(texts[0]))
    events = stored(texts, parsed)
    read = [event.payload for event in events]
    assert [fill["fill_id"] for fill in read] == [f"f{n}" for n in range(10)]
    assert [events[n].glance() is read[n] for n in range(10)] == [False] * 7 + [True] * 3
    assert events[0].payload is events[0].glance()
    assert events[7].glance() is not read[7]


def test_glance_keeps_nothing_and_finds_what_is_kept():
    (event,) = stored(['{"fill_id":"f0"}'])
    assert event.glance() == {"fill_id": "f0"}
    assert event.glance() is not event.glance()
    assert event.payload is event.glance()


def test_stored_event_keeps_no_hash_and_one_text_of_its_kind_and_symbol():
    first, second = stored(["{}", "{}"], kind="".join(["entry", "_filled"]))
    assert (first.row.seq, first.row.known_at, first.row.payload) == (0, 0, "{}")
    assert (first.row.hash, first.row.prev_hash, first.row.telemetry) == ("", "", None)
    assert first.row.kind is second.row.kind
    assert first.row.symbol is second.row.symbol
    assert not hasattr(first, "__dict__")


def test_payload_that_is_no_json_is_told_when_it_is_looked_at():
    (event,) = stored(["{"])
    for look in (lambda: event.payload, event.glance):
        with pytest.raises(StoreError, match="row 0"):
            look()


def test_rows_are_found_by_ids_that_are_plain_escaped_repeated_or_of_something_else():
    texts = [
        canonical_json({"fill_id": "aa1"}),
        canonical_json({"fill_id": "aa2", "other": {"fill_id": "bb1"}}),
        canonical_json({"fill_id": 'a"3'}),
        canonical_json({"fill_id": "aa1", "again": True}),
        canonical_json({"note": '"fill_id":"cc1"', "fill_id": "aa4"}),
        canonical_json({"fill_id": None}),
    ]
    index = JournalIndex()
    for event in stored(texts):
        index.add(event)
    found = {key: index.get("entry_filled", key) for key in ("aa1", "aa2", 'a"3', "aa4", "bb1", "cc1")}
    seqs = {key: None if event is None else event.row.seq for key, event in found.items()}
    assert seqs == {"aa1": 0, "aa2": 1, 'a"3': 2, "aa4": 4, "bb1": None, "cc1": None}
    assert [event.row.seq for event in index.starting("entry_filled", "aa")] == [0, 1, 3, 4]
    ids = RowIds("fill_id")
    ids.take(index.of_kind("entry_filled"))
    ids.take(index.of_kind("entry_filled"))
    assert [event.row.seq for event in ids.starting("aa1")] == [0, 3]


@pytest.mark.parametrize(
    ("kind", "symbol"), [("genesis", None), ("error", "BRK.B"), ("error", '"\n\u00e9'), ("error", "")]
)
def test_header_of_a_link_is_the_canonical_text_of_its_fields(kind, symbol):
    for seq in (0, 7, 10**12):
        header = canonical_json([seq, 1, -2, kind, symbol])
        expected = hashlib.sha256(f"{'0' * 64}\n{header}\n{{}}".encode()).hexdigest()
        assert (
            link("0" * 64, seq=seq, ts_event=1, known_at=-2, kind=kind, symbol=symbol, payload="{}")
            == expected
        )


@pytest.mark.parametrize("field", ["seq", "ts_event", "known_at"])
def test_link_of_something_else_than_a_number_is_refused(field):
    fields: dict[str, Any] = {"seq": 1, "ts_event": 1, "known_at": 1, field: "1"}
    with pytest.raises(TypeError):
        link("0" * 64, kind="error", symbol=None, payload="{}", **fields)


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ({"fill_id": "aa1"}, "entry_filled"),
        ({"fill_id": "aa1", "plan": {"fill_id": "bb2"}}, "entry_filled"),
        ({"plan": {"fill_id": "bb2"}, "z": 1, "fill_id": 'a"1'}, "entry_filled"),
        ({"fill_id": "\u00e9"}, "entry_filled"),
        ({"fill_id": "", "plan": {"fill_id": "bb2"}}, "entry_filled"),
        ({"amendment_id": None}, "policy_amended"),
        ({"amendment_id": None, "stop": {"amendment_id": "cc3"}}, "policy_amended"),
    ],
)
def test_own_id_of_a_row_is_that_of_its_payload(payload, kind):
    (event,) = stored([canonical_json(payload)], kind=kind)
    assert event.own_id == payload["fill_id" if kind == "entry_filled" else "amendment_id"]


def test_own_id_that_is_written_once_is_found_without_parsing():
    (event,) = stored(['{"fill_id":"aa1", and no JSON'])
    assert event.own_id == "aa1"
    (other,) = stored(['{"fill_id":"aa1"}'], kind="thesis_armed")
    assert other.own_id is None
