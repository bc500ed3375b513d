"""What the script of a run's page draws: curves, bars, marks, trades and why-chains, as plain packed data.

Packed data are small, the same bytes each time, and never markup. Arrays go as base64 of deflated
little-endian numbers, records as base64 of deflated JSON, and what frames them is JSON in which no character
can end a script element. Why-chains hold every node once: what many fills rest on costs its room one time.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from services.journal.lineage import LineageNode, trace, trace_reflection
from services.model_calls.quoting import visible
from worker.pages.figures import COMMENT_MARK, fact_text, shown_time
from worker.pages.run_marks import CLOSING, FillMark, ReflectionMark, SymbolMarks
from worker.pages.run_picture import RunPicture

MOST_CHAINS = 2_500  # of reflections; what was found wrong comes first, then the newest
TRADE_FIELDS = (
    "symbol", "playbook_id", "playbook_version", "direction", "regime", "entry_label", "exit_label",
    "entry_price", "exit_price", "quantity", "r", "pnl", "fees", "mae_r", "mfe_r", "hold_bars",
    "exit_reason", "failure_mode",
)  # fmt: skip
HEADS = {
    "playbook_id": "playbook", "playbook_version": "version", "entry_label": "entered", "exit_label": "left",
    "entry_price": "entry", "exit_price": "exit", "r": "R", "pnl": "P&L", "mae_r": "MAE", "mfe_r": "MFE",
    "hold_bars": "bars", "exit_reason": "reason", "failure_mode": "failure mode",
}  # fmt: skip
TIMES = ("entry_label", "exit_label")


class RunData:
    """The data of one page; `chains` grows while marks are written."""

    def __init__(self, picture: RunPicture) -> None:
        self._picture, self._chains = picture, WhyChains()
        self._chained = {mark.event.row.seq for mark in _most_telling(picture)}

    def document(self) -> dict[str, Any]:
        """Plain data for `script_json`."""
        picture = self._picture
        symbols = [self._symbol(s) for s in range(len(picture.bars.symbols))]
        trades = packed_records(self._trades())
        return {
            "times": packed_steps(picture.bars.times / NS_PER_MS),
            "bar_ms": milliseconds_of(picture.bars.bar_ns),
            "closes": packed_steps(picture.bars.close_times / NS_PER_MS),
            "curves": {name: packed_numbers(values) for name, values in picture.curves.items()},
            "symbols": symbols,
            "first": picture.most_traded,
            "trade_fields": list(TRADE_FIELDS),
            "trade_heads": [HEADS.get(name, name) for name in TRADE_FIELDS],
            "trades": trades,
            "outcomes": picture.outcomes,
            "chains": packed_records(self._chains.nodes),
        }

    def _symbol(self, s: int) -> dict[str, Any]:
        bars = self._picture.bars
        rows = np.flatnonzero(bars.present[:, s])
        prices = np.concatenate([getattr(bars, name)[rows, s] for name in ("open", "high", "low", "close")])
        marks = self._picture.marks.get(bars.symbols[s], SymbolMarks((), (), ()))
        return {
            "name": visible(bars.symbols[s]),
            "rows": packed_steps(rows),
            "prices": packed_numbers(prices),
            "marks": packed_records(self._marks(marks)),
            "fills": len(marks.fills),
        }

    def _marks(self, marks: SymbolMarks) -> dict[str, Any]:
        return {
            "fills": [self._fill(mark) for mark in marks.fills],
            "levels": [
                [line.kind, milliseconds_of(line.start), milliseconds_of(line.end), line.price]
                for line in marks.levels
            ],
            "reflections": [self._reflection(mark) for mark in marks.reflections],
        }

    def _fill(self, mark: FillMark) -> list[Any]:
        chain = self._chains.add(trace(self._picture.index, mark.event))
        what = mark.kind.removesuffix("_filled").replace("_", " ")
        text = f"{what} {mark.direction}, {mark.playbook_id}" + (f", {mark.reason}" if mark.reason else "")
        return [milliseconds_of(mark.label), mark.price, what, mark.direction, mark.r, visible(text), chain]

    def _reflection(self, mark: ReflectionMark) -> list[Any]:
        bars, chain = self._picture.bars, None
        if mark.event.row.seq in self._chained:
            chain = self._chains.add(trace_reflection(self._picture.index, mark.event))
        row = int(np.searchsorted(bars.close_times, mark.known_at, side="right")) - 1
        codes = ", ".join(dict.fromkeys(str(finding["code"]) for finding in mark.findings)) or "nothing found"
        about = "amendment" if mark.amends else "plan"
        return [
            row,
            visible(mark.status),
            visible(mark.decision or "not asked"),
            visible(f"{about}: {codes}"),
            int(mark.matters),
            chain,
        ]

    def _trades(self) -> list[list[Any]]:
        exits = {
            (symbol, mark.event.payload["policy_id"], mark.label): mark
            for symbol, marks in self._picture.marks.items()
            for mark in marks.fills
            if mark.kind == CLOSING
        }
        return [list(self._trade(episode, exits)) for episode in self._picture.episodes]

    def _trade(self, episode: Any, exits: dict[tuple[str, str, int], FillMark]) -> Iterator[Any]:
        for name in TRADE_FIELDS:
            value = getattr(episode, name)
            if name in TIMES:
                yield milliseconds_of(value)
            elif value is None or isinstance(value, int | float):
                yield None if value is None else value + 0  # a journal has no -0.0
            else:
                yield visible(str(value))
        mark = exits.get((episode.symbol, episode.policy_id, episode.exit_label))
        yield None if mark is None else self._chains.add(trace(self._picture.index, mark.event))


def _most_telling(picture: RunPicture) -> list[ReflectionMark]:
    marks = [mark for found in picture.marks.values() for mark in found.reflections]
    return sorted(marks, key=lambda mark: (not mark.matters, -mark.event.row.seq))[:MOST_CHAINS]


LONGEST, LONGEST_TOLD = 300, 2_000
SHOWN = ("narrative", "rationale", "thesis")
Written = tuple[str, str, str, int, tuple[str, ...], tuple[int, ...]]


class WhyChains:
    """Nodes in order of first use; a chain is the number of its root."""

    def __init__(self) -> None:
        self._numbers: dict[Written, int] = {}

    def add(self, root: LineageNode) -> int:
        """Take a chain, give its number."""
        children = tuple(self.add(child) for child in root.children)
        where = "" if root.seq is None else f"row {root.seq}"
        if root.known_at is not None:
            where += f", known {shown_time(root.known_at)}"
        node: Written = (
            visible(root.title),
            "" if root.id is None else visible(root.id[:16]),
            where,
            int(root.found),
            (*_facts(root.facts), *((COMMENT_MARK, visible(root.comment)) if root.comment else ())),
            children,
        )
        return self._numbers.setdefault(node, len(self._numbers))

    @property
    def nodes(self) -> list[list[Any]]:
        """Each as title, id, place, whether it was found, facts (name, text, name, ...) and children."""
        return [list(node) for node in self._numbers]


def _facts(facts: dict[str, Any]) -> list[str]:
    shown: list[str] = []
    for name, value in facts.items():
        if value not in (None, [], {}, ""):
            text = visible(fact_text(name, value), lines=name == "narrative")
            longest = LONGEST_TOLD if name in SHOWN else LONGEST
            shown += [visible(name), text if len(text) <= longest else f"{text[: longest - 1]}…"]
    return shown


NS_PER_MS = 1_000_000
LEVEL = 9
UNSAFE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
LEAST, MOST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def script_json(value: Any) -> str:
    """JSON for a script element of a page.

    Raises:
        ValueError: a number is not finite.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(UNSAFE)


def packed_records(value: Any) -> str:
    """Plain data as base64 of raw deflated JSON; what is undefined is null."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _pack(text.encode())


def packed_numbers(values: npt.NDArray[Any]) -> dict[str, str]:
    """Numbers with their type: `u4` for rows, `f4` for prices that it can hold in full, else `f8`."""
    if values.dtype.kind in "iu":
        kind = "u4" if not values.size or 0 <= values.min() <= values.max() < 2**32 else "f8"
    else:
        sizes = np.abs(values[np.isfinite(values) & (values != 0.0)])
        kind = "f4" if not sizes.size or LEAST <= sizes.min() <= sizes.max() < MOST else "f8"
    return {"type": kind, "data": _pack(np.ascontiguousarray(values, dtype=f"<{kind}").tobytes())}


def packed_steps(values: npt.NDArray[Any]) -> dict[str, Any]:
    """Ascending numbers as the first and the steps to the others: those of a regular grid take no room."""
    return {"type": "f8", "steps": True, "data": _pack(np.diff(values, prepend=0.0).astype("<f8").tobytes())}


def milliseconds_of(ns: int) -> float:
    """A time as a browser counts it."""
    return ns / NS_PER_MS


def _pack(data: bytes) -> str:
    deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return b64encode(deflate.compress(data) + deflate.flush()).decode()
