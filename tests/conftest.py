"""Settings every test shares: hypothesis profiles, no way to a paid model, no words about a slow machine."""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.scheduling import scheduler

pytest_plugins = ["tests.postgres.fixtures"]

settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("ci"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


LONGEST = (
    "docs/test_examples.py",
    "worker/live/test_paper_doubts.py",
    "worker/studies/ablation/test_worth.py",
    "worker/cli/test_replan.py",
    "worker/live/test_paper_savepoints.py",
    "services/memory/test_diversity.py",
    "worker/settings_walk/test_decisions.py",
    "worker/live/test_paper_clocks.py",
    "worker/test_risk_is_raised.py",
    "worker/operations/test_starts_that_say_why.py",
    "services/policy_checks/test_injection.py",
    "worker/cli/test_lost_store.py",
    "worker/live/test_paper_running_feed.py",
    "docs/test_documented_contracts.py",
    "worker/test_planted_world.py",
    "worker/test_bans_are_lifted.py",
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


def pytest_collection_finish() -> None:
    """Keep the collector of garbage from walking over ten thousand tests again and again: they all stay."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _slow_machine_is_not_told() -> Iterator[None]:
    """Commands in the process of the tests are silent however long they take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("worker.cli.progress.EVERY_S", 3_600.0)
        yield


@pytest.fixture(autouse=True)
def _no_model_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)
