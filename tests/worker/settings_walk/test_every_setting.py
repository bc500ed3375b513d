"""No setting is left out of the walk, and none is walked that is not there."""

from tests.worker.settings_walk.decisions import DECISIONS
from tests.worker.settings_walk.models import MODELS
from tests.worker.settings_walk.operation import OPERATION
from tests.worker.settings_walk.walking import leaves

TABLES = {"decisions": DECISIONS, "models": MODELS, "operation": OPERATION}

SILENT = {
    "llm.prices[].cache_write_usd": "of tokens that only a provider counts: test_budget.py",
    "llm.prices[].cache_hour_usd": "of tokens that only a provider counts: test_budget.py",
    "llm.prices[].cache_read_usd": "of tokens that only a provider counts: test_budget.py",
}


def test_every_setting_has_an_entry_in_the_walk_or_a_reason_to_have_none() -> None:
    known = {key for table in TABLES.values() for key in table} | set(SILENT)
    missing = sorted(set(leaves()) - known)
    assert not missing, (
        f"no entry in tests/worker/settings_walk for {', '.join(missing)}: add a line with another value and "
        f"the look that sees it to one of {', '.join(TABLES)}, or say in SILENT why nothing can be seen"
    )


def test_every_entry_of_the_walk_is_a_setting_and_stands_in_one_table() -> None:
    named = [*SILENT, *(key for table in TABLES.values() for key in table)]
    assert sorted(set(named) - set(leaves())) == []
    assert sorted({key for key in named if named.count(key) > 1}) == []
