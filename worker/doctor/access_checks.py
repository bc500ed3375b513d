"""The doctor's checks of what a run reaches and who reaches it: feed, model, endpoint, webhook, secrets."""

import asyncio
import os
import socket
import stat
import time
from pathlib import Path
from urllib.parse import urlsplit

from agents.judge_model import DEADLINE_MS as JUDGE_MS
from agents.model_seats import models_in_use
from schemas.errors import ModelError
from schemas.settings import Settings
from services.feeds.port import MarketFeed
from services.high_level.narrator import DEADLINE_MS as NARRATIVE_MS
from services.model_calls.language_model import LanguageModel
from trading_core.tick_guard import TickGuard
from worker.doctor.checks import DoctorContext, Finding
from worker.models import Models, check_models, configured_models
from worker.operations.endpoint_access import guard_of, is_loopback
from worker.operations.webhook import check_webhook
from worker.secrets.redaction import masked_webhook
from worker.secrets.secrets import FILE, NAMES, WEBHOOK_SECRET, WEBHOOK_URL, secret

PATIENCE_S = 30.0
FOR_OTHERS = stat.S_IRWXG | stat.S_IRWXO


async def feed(patient: DoctorContext) -> Finding:
    """Whether the feed can be opened; with `network` also whether something comes."""
    if patient.feed is None:
        return Finding("feed", "ok", "none was named; --feed NAME looks at one")
    from worker.feeds.opening import open_feed

    opened = open_feed(patient.feed, patient.settings)
    try:
        said = f"{opened.name}, {len(opened.symbols)} symbols, {opened.timeframe}"
        if patient.feed.startswith("ccxt:") and not patient.network:
            return Finding("feed", "ok", f"{said}; not asked, --network does")
        try:
            await _first_item(opened)
        except TimeoutError:
            step = "check the network, and whether the exchange has these symbols"
            return Finding("feed", "failed", f"{said}: nothing came within {PATIENCE_S:.0f} s", step)
        except StopAsyncIteration:
            return Finding("feed", "failed", f"{said}: it has no bars", "check the file and the range")
        return Finding("feed", "ok", f"{said}; bars come")
    finally:
        await opened.close()


async def model(patient: DoctorContext) -> Finding:
    """Whether the models that are to be asked have a key, a price and an address."""
    if not patient.settings.uses_models:
        return Finding("model", "ok", "rules decide, no model is asked")
    check_models(patient.settings, patient.environment)
    names = ", ".join(models_in_use(patient.settings))
    if patient.settings.runtime.llm == "replay":
        return Finding("model", "ok", f"{names}, played from the cassette")
    if not patient.network:
        return Finding("model", "ok", f"{names}; there is a key, nobody was asked; --network does")
    return await _ask_models(patient)


async def _ask_models(patient: DoctorContext) -> Finding:
    """Every model in use asked for one token, and the deadlines that the one measurement would hold."""
    said, late, failed = [], [], []
    llm = patient.settings.llm.model_copy(update={"thought_tokens": 0})
    asking = patient.settings.model_copy(update={"llm": llm})
    models = configured_models(asking, TickGuard(), patient.environment)
    try:
        for name, model, deadlines in _roles(patient.settings, models):
            started = time.perf_counter()
            try:
                await model.complete(
                    system="Answer briefly.", prompt="Ready?", max_tokens=1, deadline_ms=PATIENCE_S * 1_000
                )
            except ModelError as error:
                if error.context.get("kind") != "cut":  # one token is never the whole answer
                    failed.append(str(error))
                    continue
            took_ms = (time.perf_counter() - started) * 1e3
            held = [f"{key} {ms:g}" for key, ms in deadlines.items() if took_ms <= ms]
            late += [f"{key} {ms:g}" for key, ms in deadlines.items() if took_ms > ms]
            said.append(f"{name} answered in {took_ms:.0f} ms and holds {', '.join(held) or 'no deadline'}")
    finally:
        await models.close()
    if failed:
        step = "check the key, the name of the model and its address (llm.base_url)"
        return Finding("model", "failed", "; ".join([*failed, *said]), step)
    if late:
        step = "raise the deadlines, or use a faster model"
        return Finding("model", "warning", f"{'; '.join(said)}; too slow for {', '.join(late)}", step)
    return Finding("model", "ok", "; ".join(said))


def _roles(settings: Settings, models: Models) -> list[tuple[str, LanguageModel, dict[str, float]]]:
    """Each model that is asked, with the deadlines it has to hold in ms."""
    llm, reflection = settings.llm, settings.reflection
    fast = {
        "reflection.budget_event_ms": reflection.budget_event_ms,
        "reflection.budget_heartbeat_ms": reflection.budget_heartbeat_ms,
    }
    roles = (
        (llm.fast_model, models.fast, fast),
        (llm.strategist_model, models.strategist, {"llm.strategist_deadline_ms": llm.strategist_deadline_ms}),
        (llm.slow_model, models.slow, {"a report's": NARRATIVE_MS}),
        (llm.judge_model, models.judge, {"the judge's": JUDGE_MS}),
    )
    return [(name, model, deadlines) for name, model, deadlines in roles if model is not None]


async def endpoint(patient: DoctorContext) -> Finding:
    """Whether the endpoint is guarded as its address demands and its port is free."""
    operations = patient.settings.runtime.operations
    if operations.port is None:
        return Finding("endpoint", "ok", "none is wanted; runtime.operations.port asks for one")
    token = guard_of(operations, patient.environment)
    family = socket.AF_INET6 if ":" in operations.host else socket.AF_INET
    try:
        with socket.socket(family) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((operations.host, operations.port))
    except OSError as error:
        step = "name another runtime.operations.port, or 0 for any"
        return Finding("endpoint", "failed", f"port {operations.port}: {error.strerror}", step)
    guarded = "anybody on this machine reads it" if token is None else "a token guards it"
    return Finding("endpoint", "ok", f"{operations.host} port {operations.port or 'any'} is free; {guarded}")


async def webhook(patient: DoctorContext) -> Finding:
    """Whether notifications have an address; nothing is sent."""
    url = secret(WEBHOOK_URL, patient.environment)
    if url is None:
        return Finding("webhook", "ok", f"none is set; {WEBHOOK_URL} names one")
    shown = masked_webhook(check_webhook(url))
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        return Finding("webhook", "warning", f"{shown} is not encrypted", "use https")
    if secret(WEBHOOK_SECRET, patient.environment) is None:
        return Finding("webhook", "ok", f"{shown}; not signed, {WEBHOOK_SECRET} does that")
    return Finding("webhook", "ok", f"{shown}, signed")


async def secret_files(patient: DoctorContext) -> Finding:
    """Whether only their owner reads the files that hold secrets."""
    named = [name + FILE for name in NAMES if patient.environment.get(name + FILE)]
    for variable in named:
        secret(variable.removesuffix(FILE), patient.environment)
    open_ones = [variable for variable in named if _others_read(Path(patient.environment[variable]))]
    if open_ones:
        paths = " ".join(patient.environment[variable] for variable in open_ones)
        said = f"others may read what {', '.join(open_ones)} name"
        own = all(_is_own(Path(patient.environment[variable])) for variable in open_ones)
        # A container reads the file of its host's user and cannot change it.
        step = f"chmod 600 {paths}" if own else "another user owns it: see that its folder keeps others out"
        return Finding("secret_files", "warning", said, step)
    return Finding("secret_files", "ok", f"{len(named)} files" if named else "no secret comes from a file")


async def log_file(patient: DoctorContext) -> Finding:
    """Whether the log can be written."""
    path = patient.settings.runtime.operations.log_file
    if path is None:
        return Finding("log_file", "ok", "logs go to stderr")
    folder = os.path.dirname(path) or "."
    if not os.access(folder, os.W_OK):
        return Finding(
            "log_file", "failed", f"folder {folder} cannot be written", "make it, or name another file"
        )
    return Finding("log_file", "ok", path)


async def _first_item(opened: MarketFeed) -> None:
    items = opened.items(None)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await anext(items)
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()


def _is_own(path: Path) -> bool:
    return path.stat().st_uid == os.geteuid()


def _others_read(path: Path) -> bool:
    return bool(path.stat().st_mode & FOR_OTHERS)
