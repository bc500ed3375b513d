"""JSON document, journal and findings: runs produce what is documented, and nothing else."""

import ast
import asyncio
import itertools
import json
import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import thinktwice as tt
from schemas.errors import ModelError
from schemas.settings import DataSettings, EnvelopeSettings, PolicyLoopSettings, ReflectionSettings, Settings
from schemas.settings.llm import LlmSettings, RunLimits
from schemas.vocabulary import TickEventKind
from services.guard.desk import GuardDesk
from services.journal.kinds import GUARD_KINDS, INPUT_KINDS, JOURNAL_KINDS, TICK_KINDS
from services.model_calls.language_model import ModelReply
from services.policy_checks.coherence import LINT_SEVERITY
from services.store import open_store
from tests.each_case import check_each
from tests.worker.ruined_worlds import bold, levered_settings, ruined_bars
from tests.worker.settings_walk.decisions import CHUNKED, REVIEWED
from tests.worker.settings_walk.runs_seen import never_today
from tests.worker.settings_walk.texts_seen import read_shown
from tests.worker.settings_walk.walking import settings_with
from tests.worker.shared_runs import (
    NO_EXPERIMENTS,
    Run,
    embedded_bars,
    embedded_run,
    forget_the_room_for_experiments,
    losing_settings,
    planted_run,
    run_on,
)
from tests.worker.test_purses_of_decisions import unheard_run
from tests.worker.test_reasons_of_models import corrected
from tests.worker.test_texts_of_models import judged_falsely, narrated
from tools.docs_pages import DOCS, README, ROOT
from worker.feeds.sample_data.worlds import make_world
from worker.models import Models
from worker.studies.scenarios import planted_books

REFERENCE = DOCS / "reference"
OPEN = re.compile(r"\.[A-Z]+$")
LIVE_KINDS = INPUT_KINDS | {"entries_blocked"}  # held to the page by tests/worker/live
# A measure is renewed after half a year at the earliest: held by tests/worker/test_bans_are_lifted.py; a text
# of a model is checked in tests/worker/test_narratives_of_a_model.py.
RARE = {"error", "measure_renewed", "proposal_clamped", "run_random_veto"} | {
    "add_filled", "exit_rule_hit",  # of playbooks that ask for them: see tests/test_library_classics.py
    "expectation_measured",  # likewise: see tests/test_library_measured.py
}  # fmt: skip
OF_TEXTS = {
    "fact_check", "deliberation", "reflection_critique", "reflection_correction", "review_cycle",
    "chunk_outline", "chunk_write",
}  # fmt: skip
NEVER_IN_THESE_RUNS = OF_TEXTS | RARE | LIVE_KINDS | GUARD_KINDS


@cache
def strained_run() -> Run:
    """A run that clamps, refuses and breaks its envelope, and whose rare heartbeats let policies expire."""
    envelope = EnvelopeSettings(
        risk_fraction=0.02,
        max_gross_exposure=0.3,
        max_exposure_drift=0.02,
        max_daily_loss=0.004,
        max_drawdown=0.02,
    )
    loop = PolicyLoopSettings(heartbeat_s=60 * 86_400)
    return run_on(embedded_bars("2003-01-01", "2004-12-31"), Settings(envelope=envelope, policy_loop=loop))


class PoorModel:
    """Answers once, then fails until it is left alone, then answers again."""

    def __init__(self) -> None:
        self.requested = 0

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        self.requested += 1
        if 1 < self.requested < 4:
            raise ModelError("away", retryable=True, kind="network")
        return ModelReply("no JSON", "poor", 1, 1, 0.1)


@cache
def modelled_run() -> Run:
    """A run whose model is bad enough to be left alone, and later too dear."""
    llm = LlmSettings(
        model="anthropic/claude-haiku-5-5", breaker_failures=2, breaker_pause=2, per_run=RunLimits(calls=5)
    )
    settings = Settings(reflection=ReflectionSettings(mode="full"), llm=llm)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EnvelopeSettings, "risk_cap", 1e-4)  # a finding in every plan: the reader is asked
        return run_on(embedded_bars("2003-01-01", "2003-09-30"), settings, models=Models(fast=PoorModel()))


@cache
def proposed_run() -> Run:
    """A run whose strategist is that model, so that the rules answer in its place."""
    llm = LlmSettings(model="openai/gpt-6-sol", knowledge_cutoff="2003-05-31")
    settings = Settings(policy_loop=PolicyLoopSettings(strategist="model"), llm=llm)
    return run_on(embedded_bars("2003-01-01", "2003-07-31"), settings, models=Models(strategist=PoorModel()))


@cache
def silent_run() -> Run:
    """A run with too few bars to trade on."""
    return run_on(embedded_bars("2013-02-01", "2013-02-28"))


@cache
def doubting_run(plausibility: str) -> Run:
    """A run that leaves a bar out, or takes it as it is."""
    bars = embedded_bars("2013-02-01", "2013-02-28").select(("IBM",))
    factor = np.where(np.arange(bars.shape[0]) == 9, 10.0, 1.0)[:, None]
    columns = {name: getattr(bars, name) * factor for name in ("open", "high", "low", "close")}
    data = DataSettings.model_validate({"plausibility": plausibility})
    return run_on(replace(bars, notes=("read as it is",), **columns), Settings(data=data))


@cache
def crowded_run() -> Run:
    """A run that would try something, and has no room for an experiment any more when it is to begin."""
    bars = make_world("reverting", seed=3, bars=420, symbols=6)
    with pytest.MonkeyPatch.context() as patch:
        forget_the_room_for_experiments(patch)
        return run_on(bars, losing_settings(NO_EXPERIMENTS), planted_books())


@cache
def criticised_run() -> Run:
    """A run in which every plan is sent back."""
    return run_on(embedded_bars("2003-01-01", "2003-07-31"), critics=(never_today,))


@cache
def ruined_run() -> Run:
    """A run whose account is gone before its bars end."""
    return run_on(ruined_bars("short"), levered_settings(), [bold("short")])


def runs() -> tuple[Run, ...]:
    many = embedded_run(), planted_run(), strained_run(), modelled_run(), proposed_run(), silent_run()
    return (
        *many,
        doubting_run("always"),
        doubting_run("live"),
        ruined_run(),
        crowded_run(),
        criticised_run(),
        unheard_run(),
    )


def rows_of(page: str) -> list[list[str]]:
    lines = (REFERENCE / page).read_text("utf-8").splitlines()
    return [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines if line.startswith("| `")
    ]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@cache
def documented_keys() -> tuple[str, ...]:
    return tuple(names_in(row[0])[0] for row in rows_of("json-document.md"))


def present_keys(value: Any, path: str, known: tuple[str, ...]) -> set[str]:
    """Paths of a document as the page writes them: `[]` for a list, a capital word for open names."""
    if isinstance(value, dict):
        names = [key for key in known if OPEN.search(key) and key.rpartition(".")[0] == path]
        if names:
            return {names[0]} if value else set()
        return set().union(
            *(present_keys(item, f"{path}.{key}".lstrip("."), known) for key, item in value.items())
        )
    if isinstance(value, list):
        return set().union(set(), *(present_keys(item, f"{path}[]", known) for item in value))
    return {path}


def test_json_document_of_every_run_is_documented():
    known = documented_keys()
    for run in runs():
        assert present_keys(run.document, "", known) - set(known) == set()


def test_readme_shows_the_head_of_the_run_without_any_choice():
    assert f"head {embedded_run().document['journal']['head_hash'][:16]}" in README.read_text("utf-8")


def test_json_document_has_every_documented_key():
    known = documented_keys()
    present = set().union(*(present_keys(run.document, "", known) for run in runs()))
    assert set(known) - present == set()


def test_json_document_page_names_each_key_once():
    assert len(documented_keys()) == len(set(documented_keys()))


def test_json_document_nulls_are_allowed_by_the_page():
    may_be_null = {names_in(row[0])[0] for row in rows_of("json-document.md") if "null" in row[1]}
    quiet = silent_run().document
    null = {
        path
        for path in documented_keys()
        if not OPEN.search(path) and "[]" not in path and at(quiet, path) is None
    }
    assert null
    assert null <= may_be_null


def at(document: dict[str, Any], path: str) -> Any:
    """What stands at a path; a part of what is null is not there, which is not null."""
    value: Any = document
    for name in path.split("."):
        value = "not there" if value is None else value[name]
    return value


@cache
def documented_payloads() -> dict[str, list[set[str]]]:
    """The keys of every kind's payload; of a kind that comes in several forms, those of each."""
    found: dict[str, list[set[str]]] = {}
    for row in rows_of("journal.md"):
        kind = names_in(row[0])[0]
        if kind in JOURNAL_KINDS:
            keys = set(names_in(row[1])) | ({"bar_label"} if kind in TICK_KINDS else set())
            found.setdefault(kind, []).append(keys)
    return found


def test_journal_page_documents_every_kind():
    assert set(documented_payloads()) == JOURNAL_KINDS


def test_journal_payloads_are_those_documented():
    seen: dict[str, list[set[str]]] = {}
    for run in runs():
        for row in run.rows:
            keys = set(json.loads(row.payload))
            assert keys in documented_payloads()[row.kind], row.kind
            if keys not in seen.setdefault(row.kind, []):
                seen[row.kind].append(keys)
    assert JOURNAL_KINDS - set(seen) <= NEVER_IN_THESE_RUNS
    assert all(len(forms) == len(documented_payloads()[kind]) for kind, forms in seen.items())


def test_payloads_of_a_guard_are_those_documented(tmp_path):
    address = f"sqlite:///{tmp_path}/guard.sqlite"
    order = {"symbol": "IBM", "side": "buy", "quantity": 10, "price": 100.0, "stop": 98.0}
    with tt.guard(store=address, mode="enforce", clock=itertools.count(0).__next__) as guard:
        passed = guard.check(order, account={"equity": 100_000.0})
        guard.spend(passed.id, order)
        guard.settle([{"client_order_id": passed.id, "r": 1.0}])
        refused = guard.check(order, quantity=5_000, account={"equity": 100_000.0})
        guard.decide(guard.ask(refused), approve=False, by="ann")

    async def read() -> dict[str, set[str]]:
        async with await open_store(address, create=False) as store:
            desk = await GuardDesk.attach(store, await store.runs.find(guard.run_id), lambda: 0)
            await desk.kill(on=True, by="ann")
            return {row.kind: set(json.loads(row.payload)) async for row in store.journal.rows(guard.run_id)}

    seen = asyncio.run(read())
    assert seen.keys() == GUARD_KINDS - {"guard_outcome"}
    assert all([keys] == documented_payloads()[kind] for kind, keys in seen.items())


def test_payloads_of_texts_of_models_are_those_documented():
    sections = settings_with(CHUNKED | REVIEWED)
    seen = {
        (event["kind"], *sorted({"deliberation_id", *event["fields"]})) for event in read_shown(sections)[-1]
    }
    made = (narrated()[0], corrected()[0], judged_falsely())
    rows = (row for run in made for row in run.rows)
    seen |= {(row.kind, *sorted(json.loads(row.payload))) for row in rows if row.kind in OF_TEXTS}
    documented = documented_payloads()
    assert seen == {(kind, *sorted(keys)) for kind in OF_TEXTS for keys in documented[kind]}


def test_journal_page_has_the_fields_of_the_table_of_each_tick_event():
    """`windows` is told in words, and an amendment's id is written by the policy loop, not by the engine."""
    page = documented_payloads()
    payload = {kind: set().union(*page[kind]) - {"bar_label", "amendment_id"} for kind in TickEventKind}
    assert payload == {kind: set(kind.names) - {"windows"} for kind in TickEventKind}


MAKERS = frozenset({"blocker", "major", "info", "refuse", "note", "revise"})


def codes_in_sources() -> set[str]:
    """Codes that a check gives to a finding: the first text of the calls that make findings."""
    found = set()
    for path in (ROOT / "services" / "policy_checks").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                shown = node.args[:1] if node.func.id in MAKERS else node.args[2:3]
                if node.func.id in MAKERS | {"finding"} and shown and isinstance(shown[0], ast.Constant):
                    found.add(str(shown[0].value))
    return found


def test_findings_page_documents_every_code():
    documented = {names_in(row[0])[0] for row in rows_of("findings.md")}
    ours = [run for run in runs() if run is not criticised_run()]  # whose critic is the test's own
    made = {code for run in ours for code in run.document["policy_loop"]["finding_codes"]}
    sources = codes_in_sources()
    assert len(sources) > 30
    assert (sources | made | set(LINT_SEVERITY)) - documented == set()


@check_each("code", [names_in(row[0])[0] for row in rows_of("findings.md")])
def test_documented_finding_exists_in_the_checks(code):
    stem = (
        code.removeprefix("stop_")
        .removeprefix("target_")
        .removeprefix("horizon_")
        .removeprefix("activation_window_")
    )
    sources = "\n".join(
        path.read_text("utf-8") for path in (ROOT / "services" / "policy_checks").glob("*.py")
    )
    assert code in sources or f"_{stem}" in sources
