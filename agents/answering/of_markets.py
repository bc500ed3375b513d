"""Sentences on markets and plans: the newest snapshot of a symbol, what a plan meets, what a rule trades."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agents.answering.statements import (
    Part,
    Reply,
    Statement,
    day_of,
    join_words,
    price_of,
    quote_line,
    r_of,
    share_of,
)
from services.model_calls.quoting import count_noun

OF_THE_BAR = frozenset({"open", "high", "low", "close", "volume"})
MOST_FEATURES = 6
# Indicators as people name them: a feature as it is written, a price of the bar, or a kind of feature.
INDICATORS = re.compile(
    r"\b([a-z]+(?:_[a-z]+)*(?:_\d+)+(?:_[a-z]+)*)\b|\b(?:the|daily|day's) (high|low|open)\b(?! vol)"
    r"|\b(volume|atr|rsi|macd|adx|ema|sma|obv|vwap|cci|roc|kama|bandwidth|stochastic|aroon|mfi|z-?score)\b"
)
MOST_FINDINGS = 4
WORDS = {"pass": "would pass", "revise": "would have to be revised", "block": "would be blocked"}


def of_snapshots(reply: Reply) -> Iterator[Statement]:
    """Price, regime, features and position of each symbol."""
    seen = reply.content["snapshots"]
    if not seen:
        yield reply.absent(f"a snapshot of {reply.params.get('symbol') or 'any symbol'}")
    for snapshot in seen:
        yield from _snapshot(reply, snapshot, whole=len(seen) == 1)


def _snapshot(reply: Reply, seen: Mapping[str, Any], *, whole: bool) -> Iterator[Statement]:
    symbol, row, bar = seen["symbol"], seen["row"], day_of(seen["bar"])
    regime = "not known yet" if seen["regime"] is None else f"{seen['regime']}, {seen['structure']}"
    at = str(reply.params.get("at") or "")
    day = reply.named_day or (at[:10] if at[10:19] not in ("", "T00:00:00") else None)
    if day not in (None, seen["bar"][:10]):
        told = f"{symbol} was not evaluated on {day}; this is from the last time before."
        yield reply.tell(told, Part.WHAT, row)
    yield reply.tell(f"The close of {symbol} on {bar} was {price_of(seen['close'])}.", Part.WHAT, row)
    yield reply.tell(f"The regime of {symbol} is {regime}; its state is {seen['state']}.", Part.WHAT, row)
    yield reply.tell(_position(symbol, seen["position"]), Part.AMOUNT, row)
    features = {name: value for name, value in seen["features"].items() if name not in OF_THE_BAR}
    known = [f"{name} {price_of(value)}" for name, value in features.items() if value is not None]
    yield from _indicators(reply, seen)
    if whole and known:
        yield reply.tell(f"Features of {symbol}: {', '.join(known[:MOST_FEATURES])}.", Part.REASON, row)
    if whole and seen["events"]:
        yield reply.tell(f"It was looked at for {join_words(seen['events'])}.", Part.REASON, row)


def _indicators(reply: Reply, seen: Mapping[str, Any]) -> Iterator[Statement]:
    """The indicators that are asked for; of one that the snapshot has not, that it has not."""
    features, symbol = seen["features"], seen["symbol"]
    for found in INDICATORS.finditer(reply.question.casefold()):
        asked = next(filter(None, found.groups())).replace("-", "")
        values = {
            name: value for name, value in features.items() if name == asked or name.startswith(f"{asked}_")
        }
        for name, value in values.items():
            told = "not known yet" if value is None else price_of(value)
            yield reply.tell(f"{name} of {symbol} is {told}.", Part.WHAT, seen["row"])
        if not values:
            yield reply.tell(f"The snapshot of {symbol} has no {asked}.", Part.WHAT, seen["row"])


def _position(symbol: str, position: Mapping[str, Any] | None) -> str:
    if position is None:
        return f"At that evaluation the run held no position in {symbol}."
    stop, target = position.get("stop"), position.get("target")
    bracket = "" if stop is None else f", stop {price_of(stop)}"
    bracket += "" if target is None else f", target {price_of(target)}"
    entry = price_of(position["entry_price"])
    return f"At that evaluation the run was {position['direction']} in {symbol} from {entry}{bracket}."


def of_plan(reply: Reply) -> Iterator[Statement]:
    """Whether a plan would pass, what was found, and what would pass instead."""
    said, params = reply.content, reply.params
    plan = f"{params.get('playbook_id')} {params.get('direction')} on {params.get('symbol')}"
    yield reply.tell(f"A plan of {plan} {WORDS.get(said['status'], said['status'])} now.", Part.WHAT)
    for found in said["findings"][:MOST_FINDINGS]:
        told = f"Found ({found['severity']}) {found['code']}: {quote_line(found['message'])}."
        yield reply.tell(told, Part.REASON)
    for wanted in said["requested_revisions"][:MOST_FINDINGS]:
        yield reply.tell(f"To be revised is {quote_line(wanted)}.", Part.NEXT)


def of_rule(reply: Reply) -> Iterator[Statement]:
    """What a rule would have traded, which is noted as tried."""
    said = reply.content
    span = f"{day_of(said['first_bar'])} to {day_of(said['last_bar'])}"
    trades = count_noun(said["trades"], "trade")
    yield reply.tell(f"The rule would have made {trades} from {span}.", Part.WHAT)
    if said["trades"]:
        rate = share_of(said["win_rate"])
        yield reply.tell(f"Its mean is {r_of(said['mean_r'])} with a win rate of {rate}.", Part.AMOUNT)
    yield reply.tell("It was noted as tried: whoever tries many finds one by luck.", Part.PROOF)


def of_runs(reply: Reply) -> Iterator[Statement]:
    """How many there are, then the runs, newest first."""
    total = reply.content["total"]
    yield reply.tell(f"There {'is' if total == 1 else 'are'} {count_noun(total, 'run')}.", Part.WHAT)
    for run in reply.content["runs"][:MOST_FEATURES]:
        end = "" if run["trades"] is None else f", {count_noun(run['trades'], 'trade')}"
        end += "" if run["total_return"] is None else f", return {share_of(run['total_return'])}"
        told = f"Run {run['run_id']} is a {run['mode']} of {join_words(run['symbols'])}{end}."
        yield reply.tell(told, Part.WHAT, run["row"])
