"""What was done, by whom and of which trades, composed in plain words: the true pass, the false do not.

Each measure stands with a playbook or symbol and up to two of symbol, side, regime and year, behind or before
what is said. The figures are reckoned from the trades here, beside the reader's own reckoning of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

import numpy as np
import pandas as pd
import pytest

from services.deliberation.fact_check import check_facts
from services.evidence.run_facts import moment_of
from tests.services.deliberation.recorded import WHOLE, whole

SCOPES = {
    "symbol": (["on {}", "in {}", "with {}"], "On {},"),
    "year": (["in {}", "during {}"], "In {},"),
    "regime": (["in {}", "in the {} regime"], "In {},"),
    "side": (["on {}s", "on the {} side", "going {}"], "On the {} side,"),
}
COMPOSED = [
    ("playbook",), ("symbol",),
    ("playbook", "symbol"), ("playbook", "year"), ("playbook", "side"), ("playbook", "regime"),
    ("symbol", "side"), ("symbol", "year"), ("symbol", "regime"),
    ("playbook", "symbol", "side"), ("playbook", "symbol", "year"), ("playbook", "side", "year"),
    ("symbol", "side", "year"),
]  # fmt: skip
FEWEST_TRADES, LEAST_R, OF_EACH = 3, 0.02, 1
MOST_STRUCK = 0.02


@dataclass(frozen=True)
class Saying:
    """What is said of some trades, and what would be false of them."""

    words: str
    false: tuple[str, ...]


@cache
def trades(name: str) -> pd.DataFrame:
    """One row a trade, with the year of its entry and that of its exit."""
    rows = []
    for known in whole(name).episodes:
        one = known.episode
        entered, left = moment_of(one.entry_label).year, moment_of(one.exit_label).year
        named = {"playbook": one.playbook_id, "symbol": one.symbol, "regime": one.regime}
        told = {"side": str(one.direction), "reason": str(one.exit_reason), "year": entered, "left": left}
        rows.append(named | told | {"r": one.r, "fees": one.fees, "bars": one.hold_bars})
    return pd.DataFrame(rows)


def sayings(some: pd.DataFrame) -> Iterator[Saying]:
    """What the trades of one choice come to, in order."""
    r, count, won = some["r"], len(some), int((some["r"] > 0).sum())
    mean, total, share = r.mean(), r.sum(), 100 * (r > 0).mean()
    stopped, bars, fees = int((some["reason"] == "stop").sum()), some["bars"].mean(), some["fees"].sum()
    gained, other = ("earned", "lost") if total > 0 else ("lost", "earned")
    yield Saying(f"{gained} money", (f"{other} money",))
    verb, turned = ("was profitable", "was unprofitable") if total > 0 else ("ended in the red", "made money")
    yield Saying(verb, (turned,))
    yield Saying(f"averaged {mean:+.2f}R a trade", (f"averaged {mean + 0.13:+.2f}R a trade",))
    yield Saying(f"{gained} {abs(mean):.2f}R per trade", (f"{other} {abs(mean):.2f}R per trade",))
    yield Saying(
        f"{gained} {abs(total):.2f}R in total",
        (f"{gained} {abs(total) + 1.3:.2f}R in total", f"{other} {abs(total):.2f}R in total"),
    )
    yield Saying(
        f"returned {total:+.2f}R over {count} trades",
        (
            f"returned {total:+.2f}R over {count + 2} trades",
            f"returned {total + 2:+.2f}R over {count} trades",
        ),
    )
    yield Saying(f"made {count} trades", (f"made {count + 1} trades",))
    yield Saying(f"took {count} trades", (f"took {count + 2} trades",))
    yield Saying(f"won {share:.0f} % of its trades", (f"won {share + 7:.0f} % of its trades",))
    yield Saying(f"had a win rate of {share:.1f} %", (f"had a win rate of {share + 3:.1f} %",))
    yield Saying(
        f"won {won} of {count} trades",
        (f"won {won + 1} of {count} trades", f"won {won} of {count + 1} trades"),
    )
    yield Saying(f"paid {fees:,.2f} in fees", (f"paid {fees + 10:,.2f} in fees",))
    yield Saying(f"had a best trade of {r.max():+.2f}R", (f"had a best trade of {r.max() + 0.4:+.2f}R",))
    yield Saying(f"had a worst trade of {r.min():+.2f}R", (f"had a worst trade of {r.min() - 0.4:+.2f}R",))
    yield Saying(
        f"held its trades for {bars:.1f} bars on average",
        (f"held its trades for {bars + 2:.1f} bars on average",),
    )
    yield Saying(f"was stopped out {stopped} times", (f"was stopped out {stopped + 1} times",))


def frames(chosen: dict[str, object], way: int) -> Iterator[str]:
    """Where the choice stands: all of it behind what is said, in one of three ways, or some before."""
    whom, *rest = chosen.items()
    behind = (SCOPES[name][0][way % len(SCOPES[name][0])].format(value) for name, value in rest)
    yield " ".join([str(whom[1]), "{}", *behind]) + "."
    if rest:
        (name, value), *others = rest
        behind = (SCOPES[other][0][0].format(item) for other, item in others)
        yield " ".join([SCOPES[name][1].format(value), str(whom[1]), "{}", *behind]) + "."


def composed(name: str) -> Iterator[tuple[str, bool]]:
    """Sentences with whether they are true: a year is of entries, and what exits bear out is not false."""
    every = trades(name)
    for way, fields in enumerate(COMPOSED):
        groups = ((keys, some) for keys, some in every.groupby(list(fields)) if is_telling(some))
        for keys, some in islice(groups, OF_EACH):
            chosen = dict(zip(fields, keys, strict=True))
            left = [every["left" if field == "year" else field] == key for field, key in chosen.items()]
            of_exits = every[np.logical_and.reduce(left)]
            also = {entry.words for entry in sayings(of_exits)} if is_telling(of_exits) else None
            for frame in frames(chosen, way):
                for saying in sayings(some):
                    yield frame.format(saying.words), True
                    false = saying.false if also is not None else ()
                    yield from ((frame.format(entry), False) for entry in false if entry not in (also or ()))


def is_telling(some: pd.DataFrame) -> bool:
    """Whether trades are enough, and their sum and mean far enough from nothing for a word about them."""
    return len(some) >= FEWEST_TRADES and abs(some["r"].mean()) > LEAST_R


@pytest.mark.parametrize("name", WHOLE)
def test_composed_sentences_that_are_true_pass_and_false_ones_do_not(name):
    facts = whole(name)
    said = list(composed(name))
    held = {text: check_facts(text, facts).holds for text, _ in said}
    assert [text for text, is_true in said if not is_true and held[text]] == []
    true = [text for text, is_true in said if is_true]
    struck = [text for text in true if not held[text]]
    assert len(true) > 300
    assert len(struck) <= MOST_STRUCK * len(true), struck


# With the first of two members that did better, each true; with both turned round, each false.
SET_AGAINST = {
    "symbol": [
        "{whom} earned more on {more} than on {less}.",
        "{whom} did better in {more} than in {less}.",
        "{whom} averaged more per trade on {more} than on {less}.",
        "{whom} averaged {mean_more} on {more} and {mean_less} on {less}.",
    ],
    "side": [
        "{whom} earned more on {more}s than on {less}s.",
        "{whom} did better going {more} than {less}.",
        "The {more} trades of {whom} did better than its {less} trades.",
        "{whom}'s {more}s averaged {mean_more} and its {less}s {mean_less}.",
    ],
}
OF_BOTH_SIGNS = {
    "symbol": [
        "{whom} made money on {more} but lost money on {less}.",
        "{whom} was profitable in {more} and unprofitable in {less}.",
        "While {whom} earned on {more}, it lost on {less}.",
        "{whom} lost more on {less} than on {more}.",
    ],
    "side": ["{whom} made money going {more} and lost going {less}."],
}
OF_TWO_PLAYBOOKS = [
    "On {where}, {more} earned more than {less}.",
    "{more} did better than {less} on {where}.",
    "On {where}, {more} averaged {mean_more} and {less} {mean_less}.",
]


def comparisons(name: str) -> Iterator[tuple[str, str]]:
    """Sentences that are true, each with what it is when both members are turned round."""
    every = trades(name)
    for whom, some in every.groupby("playbook"):
        for field, forms in SET_AGAINST.items():
            for words in pairs(some, field):
                signs = OF_BOTH_SIGNS[field] if words["mean_less"].startswith("-") else []
                yield from (both_ways(form, words | {"whom": str(whom)}) for form in [*forms, *signs])
    for where, some in every.groupby("symbol"):
        for words in pairs(some, "playbook"):
            yield from (both_ways(form, words | {"where": str(where)}) for form in OF_TWO_PLAYBOOKS)


def pairs(some: pd.DataFrame, field: str) -> Iterator[dict[str, str]]:
    """Two members that follow each other, the better one in sum and mean first; that one made money."""
    told = [(key, of) for key, of in some.groupby(field) if is_telling(of)]
    for pair, other in zip(told, told[1:], strict=False):
        (more, best), (less, worst) = sorted((pair, other), key=lambda item: -item[1]["r"].sum())
        apart = best["r"].sum() - worst["r"].sum() > 1 and best["r"].mean() - worst["r"].mean() > LEAST_R
        if apart and best["r"].mean() > LEAST_R:
            means = {"mean_more": f"{best['r'].mean():+.2f}R", "mean_less": f"{worst['r'].mean():+.2f}R"}
            yield {"more": str(more), "less": str(less), **means}


def both_ways(form: str, words: dict[str, str]) -> tuple[str, str]:
    """A sentence, and what it is with both members in each other's place, but not their figures."""
    return form.format(**words), form.format(**words | {"more": words["less"], "less": words["more"]})


@pytest.mark.parametrize("name", WHOLE)
def test_composed_comparisons_that_are_true_pass_and_turned_round_they_do_not(name):
    facts = whole(name)
    said = list(comparisons(name))
    assert len(said) > 30
    assert [false for _, false in said if check_facts(false, facts).holds] == []
    assert [true for true, _ in said if not check_facts(true, facts).holds] == []
