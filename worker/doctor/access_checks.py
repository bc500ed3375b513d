"""The doctor's checks of what a run reaches and who reaches it: feed, model, endpoint, webhook, secrets."""

import asyncio
import os
import time
from contextlib import aclosing
from typing import Any, cast
from urllib.parse import urlsplit

from agents.judge_model import DEADLINE_MS as JUDGE_MS
from agents.model_seats import models_in_use, seats_of
from schemas.errors import ModelError
from schemas.settings import Settings
from services.high_level.narrator import DEADLINE_MS as NARRATIVE_MS
from trading_core.tick_guard import TickGuard
from worker.doctor.checks import FOR_OTHERS, DoctorContext, Finding, fail, ok, warn
from worker.models import check_models, configured_models
from worker.operations.endpoint_access import demand_address, guard_of, is_loopback
from worker.operations.notifications import check_webhook
from worker.secrets.redaction import masked_webhook
from worker.secrets.secrets import FILE, NAMES, WEBHOOK_SECRET, WEBHOOK_URL, secret

PATIENCE_S = 30.0


async def feed(patient: DoctorContext) -> Finding:
    """Whether the feed can be opened; with `network` also whether something comes."""
    if patient.feed is None:
        return ok("none was named; --feed NAME looks at one")
    from worker.feeds.opening import open_feed

    opened = open_feed(patient.feed, patient.settings)
    text = f"{opened.name}, {len(opened.symbols)} symbols, {opened.timeframe}"
    try:
        if patient.feed.startswith("ccxt:") and not patient.network:
            return ok(f"{text}; not asked, --network does")
        async with asyncio.timeout(PATIENCE_S), aclosing(cast("Any", opened.items(None))) as items:
            await anext(items)
    except TimeoutError:
        step = "check the network, and whether the exchange has these symbols"
        return fail(f"{text}: nothing came within {PATIENCE_S:.0f} s", step)
    except StopAsyncIteration:
        return fail(f"{text}: it has no bars", "check the file and the range")
    finally:
        await opened.close()
    return ok(f"{text}; bars come")


async def model(patient: DoctorContext) -> Finding:
    """Whether the models that are to be asked have a key, a price and an address."""
    if not patient.settings.uses_models:
        return ok("rules decide, no model is asked")
    check_models(patient.settings, patient.environment)
    names = ", ".join(models_in_use(patient.settings))
    if patient.settings.runtime.llm == "replay":
        return ok(f"{names}, played from the cassette")
    if not patient.network:
        return ok(f"{names}; there is a key, nobody was asked; --network does")
    return await _ask_models(patient)


async def _ask_models(patient: DoctorContext) -> Finding:
    lines, late, refused = [], [], []
    llm = patient.settings.llm.model_copy(update={"thought_tokens": 0})
    asking = patient.settings.model_copy(update={"llm": llm})
    models = configured_models(asking, TickGuard(), patient.environment)
    deadlines = _deadlines(patient.settings)
    try:
        for seat, name in seats_of(patient.settings).items():
            started = time.perf_counter()
            try:
                await getattr(models, seat).complete(
                    system="Answer briefly.", prompt="Ready?", max_tokens=1, deadline_ms=PATIENCE_S * 1_000
                )
            except ModelError as error:
                if error.context.get("kind") != "cut":  # one token is never the whole answer
                    refused.append(str(error))
                    continue
            took_ms = (time.perf_counter() - started) * 1e3
            held = [f"{key} {ms:g}" for key, ms in deadlines[seat].items() if took_ms <= ms]
            late += [f"{key} {ms:g}" for key, ms in deadlines[seat].items() if took_ms > ms]
            lines.append(f"{name} answered in {took_ms:.0f} ms and holds {', '.join(held) or 'no deadline'}")
    finally:
        await models.close()
    if refused:
        step = "check the key, the name of the model and its address (llm.base_url)"
        return fail("; ".join([*refused, *lines]), step)
    if late:
        step = "raise the deadlines, or use a faster model"
        return warn(f"{'; '.join(lines)}; too slow for {', '.join(late)}", step)
    return ok("; ".join(lines))


def _deadlines(settings: Settings) -> dict[str, dict[str, float]]:
    reflection = settings.reflection
    fast = {
        "reflection.budget_event_ms": reflection.budget_event_ms,
        "reflection.budget_heartbeat_ms": reflection.budget_heartbeat_ms,
    }
    return {
        "fast": fast,
        "strategist": {"llm.strategist_deadline_ms": settings.llm.strategist_deadline_ms},
        "slow": {"a report's": NARRATIVE_MS},
        "judge": {"the judge's": JUDGE_MS},
    }


async def endpoint(patient: DoctorContext) -> Finding:
    """Whether the endpoint is guarded as its address demands and its port is free."""
    operations = patient.settings.runtime.operations
    if operations.port is None:
        return ok("none is wanted; runtime.operations.port asks for one")
    token = guard_of(operations, patient.environment)
    await demand_address(operations)
    guarded = "anybody on this machine reads it" if token is None else "a token guards it"
    return ok(f"{operations.host} port {operations.port or 'any'} is free; {guarded}")


async def webhook(patient: DoctorContext) -> Finding:
    """Whether notifications have an address; nothing is sent."""
    url = secret(WEBHOOK_URL, patient.environment)
    if url is None:
        return ok(f"none is set; {WEBHOOK_URL} names one")
    shown = masked_webhook(check_webhook(url))
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        return warn(f"{shown} is not encrypted", "use https")
    signed = secret(WEBHOOK_SECRET, patient.environment) is not None
    return ok(f"{shown}, signed" if signed else f"{shown}; not signed, {WEBHOOK_SECRET} does that")


async def secret_files(patient: DoctorContext) -> Finding:
    """Whether only their owner reads the files that hold secrets."""
    files = {}
    for name in NAMES:
        if patient.environment.get(name + FILE):
            secret(name, patient.environment)
            files[name + FILE] = os.stat(patient.environment[name + FILE])
    loose = [variable for variable, found in files.items() if found.st_mode & FOR_OTHERS]
    if not loose:
        return ok(f"{len(files)} files" if files else "no secret comes from a file")
    if all(files[variable].st_uid == os.geteuid() for variable in loose):
        step = f"chmod 600 {' '.join(patient.environment[variable] for variable in loose)}"
    else:  # a container reads the file of its host's user and cannot change it
        step = "another user owns it: see that its folder keeps others out"
    return warn(f"others may read what {', '.join(loose)} name", step)


async def log_file(patient: DoctorContext) -> Finding:
    """Whether the log can be written."""
    path = patient.settings.runtime.operations.log_file
    if path is None:
        return ok("logs go to stderr")
    folder = os.path.dirname(path) or "."
    if not os.access(folder, os.W_OK):
        return fail(f"folder {folder} cannot be written", "make it, or name another file")
    return ok(path)


CHECKS = (feed, model, endpoint, webhook, secret_files, log_file)
