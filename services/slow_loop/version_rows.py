"""The journal rows of playbook versions: each place of a lifecycle, and measures that go on."""

from schemas.playbook import PlaybookVersion
from services.playbooks.renewals import Renewal
from services.ports import EventJournal


def journal_version(journal: EventJournal, version: PlaybookVersion, now: int) -> None:
    """One playbook version at one place of its lifecycle."""
    definition = version.definition
    payload = {
        **version.payload(),
        "version_hash": definition.content_hash,
        "playbook_id": definition.id,
        "version": definition.version,
    }
    journal.append("playbook_version", ts_event=min(version.since, now), known_at=now, payload=payload)


def journal_renewal(journal: EventJournal, renewal: Renewal, now: int) -> None:
    """A measure that goes on; the version that holds it stays as it is."""
    version = renewal.version
    payload = {
        "playbook_id": version.definition.id,
        "version": version.definition.version,
        "version_hash": version.definition.content_hash,
        "measure": renewal.text,
        "since": renewal.since,
        "until": renewal.until,
        "expires_at": version.expires_at,
        "shown": dict(renewal.shown),
    }
    journal.append("measure_renewed", ts_event=now, known_at=now, payload=payload)
