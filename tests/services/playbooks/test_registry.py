import dataclasses

import pytest

from schemas.errors import ConfigError, InvariantViolation
from schemas.playbook import PlaybookVersion
from schemas.regime import RegimeLabels
from schemas.vocabulary import Structure, Trend, VersionState, VolatilityBand
from services.playbooks.registry import PlaybookRegistry
from tests.services.playbooks.samples import DAY, NOON, definition, definitions
from trading_core.tick_guard import TickGuard

UP = RegimeLabels(trend=Trend.UP, volatility=VolatilityBand.MID, structure=Structure.NEUTRAL)
DOWN = UP.model_validate({"trend": "down", "volatility": "mid", "structure": "neutral"})


def registry(guard: TickGuard | None = None, n: int = 4) -> PlaybookRegistry:
    return PlaybookRegistry(tuple(reversed(definitions(n))), guard or TickGuard(), NOON)


def version(number: int, state: VersionState, since: int = NOON) -> PlaybookVersion:
    return PlaybookVersion(definition=definition(version=number), state=state, since=since, reason="test")


def test_registry_starts_with_every_definition_active_by_id():
    found = registry().reader().active()
    assert [item.definition.id for item in found] == ["alpha", "beta", "delta", "gamma"]
    assert {(item.state, item.since, item.reason) for item in found} == {(VersionState.ACTIVE, NOON, "file")}


def test_registry_without_definitions_or_with_one_id_twice_is_refused():
    with pytest.raises(ConfigError, match="no playbooks"):
        PlaybookRegistry((), TickGuard(), 0)
    with pytest.raises(ConfigError, match="'alpha' is given twice"):
        PlaybookRegistry((definition(), definition(version=2)), TickGuard(), 0)


def test_reader_names_the_nearest_of_an_unknown_playbook():
    with pytest.raises(ConfigError, match="unknown playbook 'alfa'.*Did you mean 'alpha'"):
        registry().reader().get("alfa")
    with pytest.raises(InvariantViolation, match="no playbook version"):
        registry().reader().by_hash("f" * 64)


def test_eligible_follows_labels_timeframe_enabled_and_bans():
    cells = {"trend": ("up",), "volatility": ("mid",), "structure": ("neutral",)}
    books = (
        definition("alpha"),
        definition("beta", enabled=False),
        definition("gamma", timeframes=("1h",)),
        definition("delta", eligibility={"long": cells | {"banned": ("up/mid",)}, "short": cells}),
    )
    reader = PlaybookRegistry(books, TickGuard(), 0).reader()
    names = [(item.id, direction) for item, direction in reader.eligible(UP, "1d")]
    assert names == [("alpha", "long"), ("alpha", "short"), ("delta", "short")]
    assert ("gamma", "long") in [(item.id, direction) for item, direction in reader.eligible(UP, "1h")]
    assert reader.eligible(DOWN, "1d") == ()


def test_reader_follows_the_registry_as_versions_change():
    books = registry()
    reader = books.reader()
    first = reader.get("alpha").definition
    books.record(
        PlaybookVersion(definition=first, state=VersionState.RETIRED, since=NOON + DAY, reason="test")
    )
    assert [item.definition.id for item in reader.active()] == ["beta", "delta", "gamma"]
    books.record(version(2, VersionState.ACTIVE, NOON + DAY))
    assert reader.get("alpha").definition.version == 2
    assert reader.by_hash(first.content_hash).state is VersionState.RETIRED
    assert books.next_number("alpha") == 3
    assert [item.definition.version for item in books.history("alpha")] == [1, 1, 2]


def test_registry_refuses_a_second_active_version_an_illegal_transition_and_a_step_back_in_time():
    books = registry()
    with pytest.raises(InvariantViolation, match="already has version 1 active"):
        books.record(version(2, VersionState.ACTIVE))
    with pytest.raises(InvariantViolation, match="None -> shadow is not a legal transition"):
        books.record(version(2, VersionState.SHADOW))
    books.record(version(2, VersionState.CANDIDATE, NOON + DAY))
    with pytest.raises(InvariantViolation, match="comes after"):
        books.record(version(2, VersionState.SHADOW, NOON))
    assert [item.definition.version for item in books.history("alpha")] == [1, 2]


def test_registry_write_inside_the_tick_path_raises_and_changes_nothing():
    guard = TickGuard()
    books = registry(guard)
    with guard.tick_path(), pytest.raises(InvariantViolation, match="policy_writes inside the tick path"):
        books.record(version(2, VersionState.CANDIDATE))
    assert guard.attempts["policy_writes"] == 1
    assert len(books.history()) == 4


def test_reader_has_no_way_to_write():
    # Strict mypy reports an ignore that hides nothing, so each one below says: this does not type-check.
    reader = registry().reader()
    public = {name for name in dir(reader) if not name.startswith("_")}
    assert public == {"active", "by_hash", "eligible", "get", "rules"}
    with pytest.raises(AttributeError):
        reader.record(version(2, VersionState.CANDIDATE))  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError):
        reader._active = {}  # type: ignore[misc]
    with pytest.raises(TypeError):
        reader._active["alpha"] = version(2, VersionState.ACTIVE)  # type: ignore[index]
    with pytest.raises(TypeError):
        del reader._latest["0"]  # type: ignore[attr-defined]
