"""What several tests of the pages share: a rich report, and a reader that sees a page as a browser would."""

import asyncio
import json
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from typing import Any

import numpy as np

from agents.judge_agent_client import JudgeAgentClient
from schemas.canonical import canonical_json
from schemas.settings import GateSettings, JudgeSettings, Settings
from schemas.slow_reflection import DeferredItem, JudgeActionSeen, UntradedSignal
from services.high_level_reflection_service import HighLevelReflectionService
from services.statistics.blocks import Trades
from tests.services.high_level.builders import DAY_NS, START, episode, playbook, request

PULLBACK, BREAKOUT = playbook("pullback"), playbook("breakout")
FIRES = {"armed": 10, "activated": 4, "expired": 5, "r": (0.5, -1.0, 0.25, -1.0, 0.125)}
Entry = dict[str, Any]


class Grid:
    """Evaluator of grid values whose trades all lose the same."""

    def evaluate(self, definition, parameter, value, start_ns, end_ns):
        return Trades.of([(START + k * DAY_NS // 4, START + k * DAY_NS // 4, -0.4) for k in range(30)])


def trades(definition, seed, n, mean, **facts):
    r = np.random.default_rng(seed).standard_t(3, n) / np.sqrt(3) + mean
    return [
        episode(definition, number=k, r=float(item), hold_bars=2 + k % 9, **facts) for k, item in enumerate(r)
    ]


def fingerprints(n):
    ranks = np.random.default_rng(n).random((n, 5))
    return tuple(tuple(float(item) for item in row) for row in ranks)


def batch(n):
    """A cell that loses, one that gains, a playbook that loses everywhere, and two trades of another."""
    return [
        *trades(PULLBACK, 1, n, -0.6, regime="sideways/low", failure_mode="chop"),
        *trades(PULLBACK, 2, n, 0.3, regime="up/mid"),
        *trades(BREAKOUT, 3, n, 0.0, regime="up/low"),
        *trades(BREAKOUT, 4, 2, 0.4, regime="sideways/mid"),
    ]


@cache
def entries() -> tuple[Entry, ...]:
    """Three reports of growing batches, each with its verdict, as a journal gives them back."""
    return tuple(_entry(n) for n in (12, 90, 260))


def _entry(n: int) -> Entry:
    episodes = batch(n)
    known_at = max(shown.known_at for shown in episodes) + DAY_NS
    question = request(
        episodes,
        known_at=known_at,
        drift_inputs={
            "fingerprints": fingerprints(n),
            "fires": {"pullback|long": {"now": FIRES, "before": FIRES | {"armed": 20}}},
        },
        untraded_signals=tuple(
            UntradedSignal(
                symbol="AAA", playbook_id="pullback", direction="long", label=START, reason=reason,
                counterfactual_r=0.75, known_at=START,
            )
            for reason in ("expired", "unfilled", "blocked")
        ),
        judge_actions=("ab" * 8,),
        judge_history=(
            JudgeActionSeen(verdict_id="ab" * 8, at=START, kind="set_risk_fraction", value=0.0025),
        ),
        deferred_items=(
            DeferredItem(raised_at=START, symbol="AAA", text="look at gaps", reflection_hash="x"),
        ),
        shadow_trials=(
            {"playbook_id": "pullback", "version": 2, "kind": "candidate", "regime": None, "n": 7,
             "blocks": 3, "mean_r": 0.3125, "e_value": 1.75, "e_value_below": 0.5},
        ),
    )  # fmt: skip
    service = HighLevelReflectionService(Settings(), grid=Grid())
    report = asyncio.run(service.reflect(question, episodes, (PULLBACK, BREAKOUT)))
    verdict = asyncio.run(
        JudgeAgentClient(JudgeSettings(), GateSettings()).replan(report, (PULLBACK, BREAKOUT), 0)
    )
    stored = {"report": report.payload(), "verdict": verdict.payload()}
    plain: Entry = json.loads(canonical_json(stored))
    return {"report_id": report.content_hash[:16]} | plain


def numbers(value: Any) -> set[float]:
    """Every number of a payload."""
    if isinstance(value, dict):
        return set().union(*(numbers(item) for item in value.values()))
    if isinstance(value, list | tuple):
        return set().union(*(numbers(item) for item in value))
    return {float(value)} if isinstance(value, int | float) and not isinstance(value, bool) else set()


@dataclass
class Node:
    """An element as a browser sees it."""

    name: str
    attributes: dict[str, str | None]
    children: "list[Node | str]" = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text inside."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, name: str, class_: str | None = None) -> "list[Node]":
        """Every element of a name below this one, in order; with a class when one is given."""
        found = []
        for child in self.children:
            if isinstance(child, Node):
                named = child.name == name
                if named and (class_ is None or class_ in (child.attributes.get("class") or "").split()):
                    found.append(child)
                found += child.all(name, class_)
        return found

    def outline(self) -> list[Any]:
        """Elements and attributes without a word of their text."""
        inner = [child.outline() for child in self.children if isinstance(child, Node)]
        return [self.name, sorted(self.attributes), inner]


class _Reader(HTMLParser):
    VOID = ("meta",)

    def __init__(self) -> None:
        super().__init__()
        self.open = [Node("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, dict(attrs))
        self.open[-1].children.append(node)
        if tag not in self.VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> closes <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")


def read(page: str) -> Node:
    """The page as a tree; every element is closed where it should be."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert len(reader.open) == 1
    return reader.open[0]
