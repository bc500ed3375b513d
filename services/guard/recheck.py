"""Whether the verdicts of a guard are those of its limits: each is made again from what its row holds."""

import json
from collections.abc import AsyncIterable, Mapping
from typing import Any

from schemas.guard import Account, BarFacts, GuardSettings, Order, Verdict
from services.guard.ledger import Ledger
from services.guard.limits import OrderContext, check_limits
from services.guard.verdicts import make_verdict, row_of
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
    order, (account, facts) = payload["order"], (payload[name] for name in ("account", "facts"))
    stored = Verdict.model_validate(payload["verdict"])
    seen = OrderContext(
        Order.model_validate(order), account and Account.model_validate(account), settings,
        facts and BarFacts.model_validate(facts), ledger, stored.at,
    )  # fmt: skip
    found = [finding for finding in stored.findings if finding.code != "approved"]
    made, approved = make_verdict(seen, found, stored.not_checked, stored.mode)
    row = row_of(seen, made, approved)
    for reply, again in ((stored.payload(), made.payload()), (payload, row)):
        if wrong := next((name for name in again if reply[name] != again[name]), None):
            return f"{wrong} of its verdict is {again[wrong]!r}, not {reply[wrong]!r}"
    codes = [finding.code for finding in found]
    limits = [] if seen.reduces or "guard_error" in codes else [each.code for each in check_limits(seen)[0]]
    fit = limits == codes[: len(limits)]
    return None if fit else f"limits find {', '.join(limits)}, not {', '.join(codes)}"
