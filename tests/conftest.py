"""Settings every test shares: hypothesis profiles, no way to a paid model, no words about a slow machine."""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.postgres.fixtures"]

settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("ci"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


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
