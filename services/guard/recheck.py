"""Whether the verdicts of a guard are those of its limits: each is made again from what its row holds."""

import json
from collections.abc import AsyncIterable, Mapping
from typing import Any

from schemas.guard import Account, BarFacts, GuardSettings, Order
from services.guard.ledger import Ledger
from services.guard.limits import OrderContext, check_limits
from services.journal.chain import JournalRow


async def recheck(rows: AsyncIterable[JournalRow]) -> tuple[int, str | None]:
    """The number of rows that were followed, and what is wrong with the next one; None where nothing is.

    What the limits find depends on settings, order, account, bars and the rows before, all of which are
    stored; what critics and models said is not asked again.
    """
    ledger, known = Ledger(), dict[str, GuardSettings]()
    async for row in rows:
        payload = json.loads(row.payload)
        if row.kind == "guard_opened":
            known[payload["settings_hash"]] = GuardSettings.model_validate(payload["settings"])
        elif row.kind == "guard_verdict":
            problem = _problem_of(payload, known[payload["settings_hash"]], ledger)
            if problem is not None:
                return row.seq, f"row {row.seq}: {problem}"
        ledger.fold(row)
    return ledger.events, None


def _problem_of(payload: Mapping[str, Any], settings: GuardSettings, ledger: Ledger) -> str | None:
    account, facts, verdict = payload["account"], payload["facts"], payload["verdict"]
    seen = OrderContext(
        Order.model_validate(payload["order"]),
        None if account is None else Account.model_validate(account),
        settings,
        None if facts is None else BarFacts.model_validate(facts),
        ledger,
        verdict["at"],
    )
    stored = [found["code"] for found in verdict["findings"]]
    if "guard_error" in stored:
        return None
    if seen.reduces != verdict["reduces"] or seen.order.content_hash != verdict["order_hash"]:
        return "the order is not what its verdict says"
    found = [] if seen.reduces else [finding.code for finding in check_limits(seen)[0]]
    return (
        None if found == stored[: len(found)] else f"limits find {', '.join(found)}, not {', '.join(stored)}"
    )
