"""Every version of the playbooks of a run: how it came, what it changed, what speaks for it and against it.

Read from the run's journal alone: transitions as they were recorded, trades on the account and on paper.
"""

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from schemas.episode import Episode
from schemas.errors import DataError
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.settings import Settings
from schemas.vocabulary import VersionState
from services.journal.chain import JournalRow
from services.journal.index import Event
from services.playbooks.version_diff import changes
from services.slow_loop.trial_evidence import EpisodeKey, round_figure, trial_evidence, trial_track
from services.statistics.calendar_units import unit_of_timeframe

KINDS = frozenset({"playbook_version", "measure_renewed", "shadow_episode", "episode"})
RENEWED = ("measure", "since", "until", "expires_at", "shown")
COUNTER = "counter_"
BANNED = "banned_cell"
ON_TRIAL = "on trial as "


@dataclass
class VersionHistory:
    """One version of a playbook with everything that was recorded of it."""

    first: PlaybookVersion
    transitions: list[tuple[int, PlaybookVersion]] = field(default_factory=list)
    renewals: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    traded: list[Episode] = field(default_factory=list)
    on_paper: list[Episode] = field(default_factory=list)
    banned: dict[str, list[Episode]] = field(default_factory=dict)
    trial: str | None = None

    @property
    def definition(self) -> PlaybookDefinition:
        """What the version is."""
        return self.first.definition

    @property
    def latest(self) -> PlaybookVersion:
        """Where it stands."""
        return self.transitions[-1][1]

    @property
    def expires_at(self) -> int | None:
        """When its trial ends or its first measure is weighed again, ns."""
        at, latest = self.transitions[-1]
        renewed = [payload["expires_at"] for when, payload in self.renewals if when >= at]
        return renewed[-1] if renewed and latest.state is VersionState.ACTIVE else latest.expires_at


class PlaybookHistory:
    """The versions of every playbook of a run, in order of appearance."""

    def __init__(self, settings: Settings | None) -> None:
        """Begin empty; without the run's settings trades are counted and not measured."""
        self._settings = settings
        self._versions: dict[str, VersionHistory] = {}
        self._measured: dict[tuple[int, int], dict[str, Any] | None] = {}  # by list of trades and its length

    def take(self, events: Iterable[Event]) -> None:
        """Take events, in order.

        Raises:
            DataError: one holds something else than its kind says.
        """
        for event in events:
            with _damage_of(event.row):
                self._take(event)

    async def read(self, rows: AsyncIterator[JournalRow]) -> None:
        """Take the rows of a run, in order.

        Raises:
            DataError: a row holds something else than its kind says.
        """
        async for row in rows:
            with _damage_of(row):
                self._take(Event(row, json.loads(row.payload)))

    def _take(self, event: Event) -> None:
        row, payload = event.row, event.payload
        if row.kind == "playbook_version":
            self._note_version(row.known_at, payload)
        elif row.kind == "measure_renewed":
            fields = {name: payload[name] for name in RENEWED}
            self._versions[payload["version_hash"]].renewals.append((row.known_at, fields))
        elif row.kind == "shadow_episode":
            self._note_paper_trade(payload)
        elif row.kind == "episode":
            self._note_trade(Episode.model_validate(payload["episode"]))

    def of(self, playbook_id: str | None = None) -> list[VersionHistory]:
        """Versions of one playbook, or of all."""
        found = self._versions.values()
        return [version for version in found if playbook_id in (None, version.definition.id)]

    def names(self) -> list[str]:
        """Ids of the playbooks."""
        return sorted({version.definition.id for version in self._versions.values()})

    def document(self, one: VersionHistory) -> dict[str, Any]:
        """A version as plain data; times in ns, ids as they stand in the journal."""
        parent = self._versions.get(one.first.parent_hash or "")
        differs = () if parent is None else changes(parent.definition, one.definition)
        answer = one.latest.evidence
        return {
            "playbook_id": one.definition.id,
            "version": one.definition.version,
            "version_hash": one.definition.content_hash,
            "state": str(one.latest.state),
            "since": one.latest.since,
            "expires_at": one.expires_at,
            "trial": one.trial,
            "banned": sorted(_find_bans(one.definition)),
            "ever_banned": any(_find_bans(version.definition) for _, version in one.transitions),
            "parent": None if parent is None else parent.definition.version,
            "changes": [change.payload() for change in differs],
            "report_id": one.first.report_id,
            "verdict_id": one.first.verdict_id,
            "action_id": one.first.action_id,
            "transitions": [_transition(at, version) for at, version in one.transitions],
            "renewals": [{"known_at": at, **shown} for at, shown in one.renewals],
            "evidence": {name: value for name, value in answer.items() if not name.startswith(COUNTER)},
            "counter_evidence": {
                name.removeprefix(COUNTER): value
                for name, value in answer.items()
                if name.startswith(COUNTER)
            },
            "account": self._summarise(one.traded),
            "paper": self._summarise(one.on_paper),
            "banned_cells": {cell: self._summarise(found) for cell, found in sorted(one.banned.items())},
        }

    def document_with_means(self, one: VersionHistory) -> dict[str, Any]:
        """`document`, with the mean R of all `n` trades beside that of the trades of complete blocks."""
        shown = self.document(one)
        cells = {cell: _with_mean(shown["banned_cells"][cell], found) for cell, found in one.banned.items()}
        return shown | {
            "account": _with_mean(shown["account"], one.traded),
            "paper": _with_mean(shown["paper"], one.on_paper),
            "banned_cells": dict(sorted(cells.items())),
        }

    def _note_version(self, at: int, payload: dict[str, Any]) -> None:
        version = PlaybookVersion.of_row(payload)
        known = self._versions.setdefault(payload["version_hash"], VersionHistory(version))
        known.transitions.append((at, version))
        if version.state is VersionState.SHADOW:
            known.trial = version.reason.removeprefix(ON_TRIAL).partition(":")[0]

    def _note_paper_trade(self, payload: dict[str, Any]) -> None:
        known = self._versions[payload["version_hash"]]
        episode = Episode.model_validate(payload["episode"])
        banned = payload["kind"] == BANNED
        (known.banned.setdefault(episode.regime, []) if banned else known.on_paper).append(episode)

    def _note_trade(self, episode: Episode) -> None:
        if episode.playbook_hash:  # a plan with its own rules follows no version
            self._versions[episode.playbook_hash].traded.append(episode)

    def _summarise(self, episodes: list[Episode]) -> dict[str, Any] | None:
        key = id(episodes), len(episodes)
        if key not in self._measured:
            self._measured[key] = self._measure(episodes)
        return self._measured[key]

    def _measure(self, episodes: list[Episode]) -> dict[str, Any] | None:
        """Trades, blocks, mean R, e-values on both sides and an interval; None without a trade."""
        learnable = [episode for episode in episodes if not episode.no_learn]
        if self._settings is None:
            return {"n": len(learnable)} if learnable else None
        if not learnable:
            return None
        gate, alpha = self._settings.gate, self._settings.judge.promotion_alpha
        last = max(episode.known_at for episode in learnable)
        track = trial_track(
            EpisodeKey(learnable), gate, unit_of_timeframe(gate.block, learnable[0].timeframe)
        )
        shown = track.interval(track.complete(last), alpha)
        return {
            **trial_evidence(learnable, gate, last),
            "alpha": alpha,
            "lower_r": shown.lower,
            "upper_r": shown.upper,
            "interval_kind": shown.kind,
        }


def _with_mean(shown: dict[str, Any] | None, episodes: list[Episode]) -> dict[str, Any] | None:
    learnable = [episode.r for episode in episodes if not episode.no_learn]
    return None if shown is None else shown | {"mean_all_r": round_figure(fmean(learnable))}


@contextmanager
def _damage_of(row: JournalRow) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"row {row.seq} of the journal is damaged, it holds no {row.kind}: `thinktwice verify` says what "
            "was changed, `thinktwice db restore` gets a backup back"
        ) from error


def _find_bans(definition: PlaybookDefinition) -> set[str]:
    return {cell for rules in definition.eligibility.values() for cell in rules.banned}


def _transition(at: int, version: PlaybookVersion) -> dict[str, Any]:
    return {
        "known_at": at,
        "state": str(version.state),
        "since": version.since,
        "expires_at": version.expires_at,
        "reason": version.reason,
        "report_id": version.report_id,
        "verdict_id": version.verdict_id,
        "action_id": version.action_id,
    }
