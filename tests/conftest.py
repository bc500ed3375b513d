"""Settings every test shares: hypothesis profiles, no way to a paid model, no words about a slow machine."""

import gc
import os
from collections.abc import Iterator
from functools import cache

import pytest
import typer.main
from hypothesis import HealthCheck, settings

from schemas.settings import EnvelopeSettings
from tests.made_once import FOLDERS
from tests.scheduling import scheduler
from worker.runs.garbage import COLLECT_AT

pytest_plugins = ["tests.postgres.fixtures"]

settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("ci"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


LONGEST = (
    "worker/settings_walk/test_decisions.py",
    "docs/test_documented_contracts.py",
    "worker/cli/test_replan.py",
    "docs/test_examples.py",
    "worker/live/test_paper_doubts.py",
    "worker/live/test_paper_savepoints.py",
    "worker/live/test_paper_running_feed.py",
    "worker/live/test_paper_commands.py",
    "worker/cli/test_ask.py",
    "worker/cli/test_plans.py",
    "worker/cli/test_changed_store.py",
    "worker/cli/test_terminal_pages.py",
    "worker/cli/test_progress.py",
    "worker/mcp_server/test_server_is_reached.py",
    "pages/test_run_page.py",
    "worker/test_texts_of_models.py",
    "worker/test_trials_of_runs.py",
    "commands/test_started.py",
    "worker/cli/test_hostile_text.py",
    "worker/cli/test_open_files.py",
    "worker/test_session_over_the_wire.py",
    "worker/cli/test_page.py",
    "agents/planning/test_run_evidence.py",
    "services/store/test_change_plans_stateful.py",
    "worker/live/test_paper_postgres_outages.py",
    "worker/operations/test_store_between_bars.py",
    "test_library_stores.py",
    "worker/test_amendments_in_a_session.py",
    "services/store/test_migrations.py",
    "worker/slow_worker/test_slot_runner.py",
    "worker/live/test_paper_bad_bars.py",
    "test_library_worlds.py",
    "worker/cli/test_processes.py",
    "worker/live/test_paper_trials.py",
    "worker/live/test_paper_ends.py",
    "worker/live/test_paper_model_strategist.py",
    "worker/test_slow_loop_gates.py",
    "worker/studies/ablation/test_worth.py",
    "worker/test_model_strategist.py",
    "worker/test_providers_in_runs.py",
    "worker/test_execution_settings.py",
    "worker/test_anonymised_runs.py",
    "services/policy_checks/test_right_plans_and_faults.py",
    "worker/live/test_paper_clocks.py",
    "worker/test_null_world.py",
    "worker/test_judge_actions_in_a_run.py",
    "services/policy_checks/test_injection.py",
    "worker/operations/test_starts_that_say_why.py",
    "services/playbooks/test_readers_type_check.py",
    "services/memory/test_diversity.py",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no process is left alone with one at the end."""
    ranks = {config.rootpath / "tests" / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Let files that look at the same long runs go to one process."""
    return scheduler(config, log)


def pytest_configure(config: pytest.Config) -> None:
    """Let the hundreds of processes that the tests start share what the first of them has compiled.

    Where the environment forbids bytecode beside the sources, each would compile every package again.
    """
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ["PYTHONPYCACHEPREFIX"] = str(config.rootpath / ".pytest_cache" / "bytecode")
    gc.disable()  # what is collected stays


def pytest_collection_finish() -> None:
    """Keep the collector of garbage from walking over ten thousand tests again and again: they all stay.

    And from looking at every 700 new objects, which hypothesis and a run make in no time.
    """
    gc.freeze()
    gc.set_threshold(COLLECT_AT)
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _folder_of_what_is_made_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The parent of the folders of all processes, or the folder of the only one."""
    folder = tmp_path_factory.getbasetemp()
    FOLDERS[:] = [folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder]


@pytest.fixture(autouse=True, scope="session")
def _slow_machine_is_not_told() -> Iterator[None]:
    """Commands in the process of the tests are silent however long they take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("worker.runs.progress.EVERY_S", 3_600.0)
        patch.setattr("worker.runs.progress.FIRST_S", 3_600.0)
        yield


@pytest.fixture(autouse=True, scope="session")
def _tree_of_commands_is_built_once() -> Iterator[None]:
    """As in any process that runs one command; the runner of the tests would build it for each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_model_credentials() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.upper().startswith("ANTHROPIC_")]:
            patch.delenv(name)
        yield


@pytest.fixture
def over_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each playbook risks more than the cap: a finding of weight in every plan, and the same orders."""
    monkeypatch.setattr(EnvelopeSettings, "risk_cap", 1e-4)
