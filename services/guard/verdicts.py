"""From findings to a verdict and its words, and what an account leaves room for before a model thinks."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from schemas.errors import nearest
from schemas.guard import Account, BarFacts, GuardSettings, Mode, Order, Verdict
from schemas.reflection import Finding
from schemas.vocabulary import CheckName, ReflectionStatus, Severity
from services.guard.ledger import NS, Ledger
from services.guard.limits import OrderContext, check_limits, list_caps
from services.policy_checks.findings import OP_WORDS, status_of

PROBE = 1e-6  # worth of an order that no limit on sizes stops


class Entry(NamedTuple):
    """A row to be."""

    kind: str
    payload: Mapping[str, Any]
    symbol: str | None = None
    telemetry: Mapping[str, Any] | None = None


class ModelRows:
    """Rows of model calls that go in front of the verdict that they led to."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def append(
        self, kind: str, *, payload: dict[str, Any], symbol: str | None = None,
        telemetry: dict[str, Any] | None = None, **_times: int,
    ) -> None:  # fmt: skip
        """Keep one; its time is that of the verdict."""
        self.entries.append(Entry(kind, payload, symbol, telemetry))


def make_verdict(
    seen: OrderContext, findings: Sequence[Finding], missing: Sequence[str], mode: Mode
) -> tuple[Verdict, str | None]:
    """The verdict that findings come to, and the hash of the question whose approval it uses.

    What a person approved passes, whatever was found.
    """
    status, order_hash, approved = status_of(findings), seen.order.content_hash, None
    limits = seen.limits
    lasts_s = limits.expires_s
    if seen.reduces and limits.duplicate_window_s:  # as long as other exits count it
        lasts_s = min(lasts_s, limits.duplicate_window_s)
    if status is not ReflectionStatus.PASS:
        approved = seen.ledger.approval_of(order_hash, seen.now)
    if approved is not None:
        approver = seen.ledger.questions[approved].by
        findings = [*findings, note("approved", f"approved by {approver!a}, for this order and once")]
        status = ReflectionStatus.PASS
    text = f"{seen.ledger.head_hash} {order_hash} {seen.now}"
    verdict = Verdict(
        id=f"tt{hashlib.sha256(text.encode()).hexdigest()[:24]}",
        order_hash=order_hash,
        status=status.value,
        findings=tuple(findings),
        reply=describe_findings(status, findings) + _name_nearest(seen, status),
        not_checked=tuple(missing),
        reduces=seen.reduces,
        at=seen.now,
        expires_at=seen.now + int(lasts_s * NS),
        mode=mode,
    )
    return verdict, approved


def row_of(seen: OrderContext, verdict: Verdict, approved: str | None) -> dict[str, Any]:
    """Payload of the row of a verdict: what it was made of, and what later checks ask of it."""
    return {
        "verdict_id": verdict.id, "verdict": verdict.payload(), "order": seen.order.payload(),
        "account": seen.account and seen.account.payload(), "facts": seen.facts and seen.facts.payload(),
        "position": seen.position, "quantity": seen.quantity, "notional": seen.notional,
        "price": seen.price, "risk": seen.risk, "approved": approved,
        "settings_hash": seen.settings.content_hash,
    }  # fmt: skip


def spending_row(verdict_id: str, order: Order, problem: str | None) -> Entry:
    """The row of a use of a verdict, and why it could not be used; None: it was."""
    row = {"verdict_id": verdict_id, "order_hash": order.content_hash, "problem": problem}
    return Entry("guard_spent", row, order.symbol)


def describe_findings(status: ReflectionStatus, findings: Sequence[Finding]) -> str:
    """What a model is told: each finding that counts with the value that would pass."""
    lines = []
    for found in findings if status is not ReflectionStatus.PASS else ():
        if found.severity in (Severity.MAJOR, Severity.BLOCKER):
            remedy, line = found.remedy, f"{found.code}: {found.message}"
            if remedy is not None:
                line += f" ({remedy.field} {OP_WORDS[remedy.op]} {remedy.value!r} would pass this check)"
            lines.append(line)
    return f"{status.value}: {'; '.join(lines)}" if lines else status.value


def _name_nearest(seen: OrderContext, status: ReflectionStatus) -> str:
    """The position that an order which does not pass may have meant to close, under another name."""
    held, symbol = {} if seen.account is None else seen.account.positions, seen.order.symbol
    opposite = [name for name, position in held.items() if position.quantity * seen.order.sign < 0]
    guess = "" if status is ReflectionStatus.PASS or symbol in held else nearest(symbol, opposite)
    return f"; no position is held in {symbol!a}.{guess}" if guess else ""


def note(code: str, message: str, severity: Severity = Severity.INFO) -> Finding:
    """A finding of the guard itself."""
    return Finding(check=CheckName.INVARIANT, code=code, severity=severity, message=message)


def make_unrecorded(order: Order, problem: str, now: int) -> Verdict:
    """What a guard in mode `shadow` says of an order that it could not record: it stops nobody."""
    blocked = [note("guard_error", ascii(problem), Severity.BLOCKER)]
    return Verdict(
        id=f"unrecorded-{os.urandom(8).hex()}", order_hash=order.content_hash, status="block",
        findings=tuple(blocked), reply=describe_findings(ReflectionStatus.BLOCK, blocked),
        at=now, expires_at=now, mode="shadow",
    )  # fmt: skip


def describe_room(
    symbol: str,
    account: Account | None,
    settings: GuardSettings,
    facts: BarFacts | None,
    ledger: Ledger,
    now: int,
) -> dict[str, Any]:
    """Directions that may be opened in a symbol, the most that one order may be worth, and why no more."""
    directions, most, reasons = [], float("inf"), dict[str, None]()
    for side in ("buy", "sell"):
        order = Order(symbol=symbol, side=side, notional=PROBE)
        seen = OrderContext(order, account, settings, facts, ledger, now)
        blocked = [found for found in check_limits(seen)[0] if found.severity is Severity.BLOCKER]
        reasons |= {f"{found.code}: {found.message}": None for found in blocked}
        caps = min(list_caps(seen), key=lambda cap: cap[1], default=None)
        if not blocked and caps is not None:
            most = min(most, caps[1])
            reasons[f"{caps[0]}: {caps[2]}"] = None
        if not blocked and (caps is None or caps[1] > 0):
            directions.append(order.direction)
    known = most if directions and most < float("inf") else None
    notional = known if directions else 0.0
    quantity = (
        None
        if notional is None or (notional and facts is None)
        else notional / ((facts and seen.unit(symbol, facts.close)) or 1.0)
    )
    return {
        "symbol": symbol,
        "directions": directions,
        "max_notional": notional,
        "max_quantity": quantity,
        "reasons": list(reasons),
    }
