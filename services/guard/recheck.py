"""Whether the verdicts of a guard are those of its limits: each is made again from what its row holds."""

import json
from collections.abc import AsyncIterable, Mapping
from typing import Any

from schemas.guard import Account, BarFacts, GuardSettings, Order
from schemas.reflection import Finding
from services.guard.ledger import BESIDE, NS, Ledger
from services.guard.limits import OrderContext, check_limits
from services.journal.chain import JournalRow
from services.policy_checks.findings import status_of

SEEN = tuple(name for name in BESIDE if name != "facts")


async def recheck(rows: AsyncIterable[JournalRow]) -> tuple[int, str | None]:
    """The number of rows that were followed, and what is wrong with the next one; None where nothing is.

    What the limits find depends on settings, order, account, bars and the rows before, all of which are
    stored; what critics and models said is not asked again.
    """
    ledger, known = Ledger(), dict[str, GuardSettings]()
    async for row in rows:
        payload = json.loads(row.payload)
        if row.kind == "guard_opened":
            settings = GuardSettings.model_validate(payload["settings"])
            known[settings.content_hash] = settings
        elif row.kind == "guard_verdict":
            problem = _problem_of(payload, known.get(payload["settings_hash"]), ledger)
            if problem is not None:
                return row.seq, f"row {row.seq}: {problem}"
        ledger.fold(row)
    return ledger.events, None


def _problem_of(payload: Mapping[str, Any], settings: GuardSettings | None, ledger: Ledger) -> str | None:
    if settings is None:
        return f"no row before it holds its settings {payload['settings_hash']!a}"
    account, facts, verdict = payload["account"], payload["facts"], payload["verdict"]
    seen = OrderContext(
        Order.model_validate(payload["order"]),
        None if account is None else Account.model_validate(account),
        settings,
        None if facts is None else BarFacts.model_validate(facts),
        ledger,
        verdict["at"],
    )
    findings = [Finding.model_validate(found) for found in verdict["findings"]]
    stored, status = [found.code for found in findings], status_of(findings)
    approved = status is not status.PASS and ledger.approval_of(verdict["order_hash"], seen.now)
    said = {name: payload[name] for name in (*SEEN, "approved")} | {
        name: verdict[name] for name in ("reduces", "order_hash", "expires_at", "status")
    }
    made = {name: getattr(seen, name) for name in (*SEEN, "reduces")} | {
        "order_hash": seen.order.content_hash,
        "expires_at": seen.now + int(seen.limits.expires_s * NS),
        "approved": approved or None,
        "status": "pass" if approved else status.value,
    }
    if wrong := next((name for name in said if said[name] != made[name]), None):
        return f"{wrong} of its verdict is {made[wrong]!r}, not {said[wrong]!r}"
    if "guard_error" in stored:
        return None
    found = [] if seen.reduces else [finding.code for finding in check_limits(seen)[0]]
    return (
        None if found == stored[: len(found)] else f"limits find {', '.join(found)}, not {', '.join(stored)}"
    )
