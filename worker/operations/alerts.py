"""Alert for a person: what happened, as one message, whatever surface carries it.

Alert is made from what the journal and the worker's own events say, by pure functions: nothing is sent here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from schemas.canonical import ns_to_datetime
from schemas.settings.live import NotificationKind

Severity = Literal["info", "warning", "critical"]
SEVERITIES: dict[NotificationKind, Severity] = {
    "envelope_breach": "critical",
    "plan_blocked": "warning",
    "approval_waits": "info",
    "feed_stale": "warning",
    "entries_blocked": "warning",
    "safe_mode": "critical",
    "store_away": "critical",
    "error": "warning",
    "recovered": "info",
}


@dataclass(frozen=True)
class Alert:
    """One thing that a person may want to know.

    Attributes:
        kind: see `NotificationKind`.
        summary: one line.
        at: when it happened, ns.
        about: what it is about, for example a symbol.
        topic: what it says something new of: the same kind on one topic is a repetition, another kind is not.
        detail: plain data.
    """

    kind: NotificationKind
    summary: str
    at: int
    about: str | None = None
    topic: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Names the topic."""
        return self.topic or f"{self.kind} {self.about}"

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return SEVERITIES[self.kind]

    def document(self, run_id: str, mode: str) -> dict[str, Any]:
        """What is sent; `text` is what chat services show."""
        moment = ns_to_datetime(self.at).isoformat()
        return {
            "v": 1,
            "kind": self.kind,
            "severity": self.severity,
            "text": f"thinktwice {run_id} ({mode}): {self.summary}",
            "summary": self.summary,
            "run_id": run_id,
            "mode": mode,
            "at": moment,
            "about": self.about,
            "detail": dict(self.detail),
        }


def of_journal(kind: str, payload: Mapping[str, Any], at: int, symbol: str | None) -> Alert | None:
    """The news in a journal row; None for the many that are none."""
    if kind == "envelope_breach":
        limit = str(payload.get("limit"))
        broke = f"limit {limit} broke: flat, and no entries"
        summary = "the account is gone: the run ends" if limit == "account_gone" else broke
        return Alert("envelope_breach", summary, at, limit, detail=payload)
    if kind == "policy_reflection":
        return _alert_of_block(payload, at, symbol)
    if kind == "feed_anomaly":
        return _of_feed(str(payload.get("anomaly")), payload, at, symbol)
    if kind == "error":
        what = f"{payload.get('where')}: {payload.get('type')}"
        return Alert("error", what, at, symbol, f"error {what} {symbol}", payload)
    return None


def of_worker(event: str, told: Mapping[str, Any], at: int) -> Alert | None:
    """The news in an event of a process; None for the many that are none."""
    if event == "safe_mode":
        return _of_safe_mode(told, at)
    if event == "store_away":
        return Alert("store_away", "the store is away; the worker goes on trying", at, None, "store", told)
    if event == "store_back":
        return Alert("recovered", "the store is back", at, None, "store", told)
    if event == "model_failing":
        what = f"{told.get('model')}: {told.get('failed_in_a_row')} calls in a row without a usable reply"
        why = f"{told.get('reason')}; rules decide instead"
        return Alert("error", f"{what}: {why}", at, event, f"{event} {told.get('model')}", told)
    if event in ("slot_failed", "waker_silent", "look_failed", "worker_died"):
        what = f"{event.replace('_', ' ')}: {told.get('reason', '')}".rstrip(": ")
        return Alert("error", what, at, event, detail=told)
    return None


def _of_safe_mode(told: Mapping[str, Any], at: int) -> Alert | None:
    change, reason = told.get("change"), told.get("reason")
    topic = f"safe_mode {reason}"
    if change in ("entered", "raised"):
        return Alert(
            "safe_mode", f"safe mode, no entries and exits run on: {reason}", at, reason, topic, told
        )
    if change in ("ended", "left"):
        return Alert("recovered", f"safe mode: {reason} is over", at, reason, topic, told)
    return None


FEED_TROUBLE: dict[str, tuple[NotificationKind, str]] = {
    "stale": ("feed_stale", "{} has no bars"),
    "disconnected": ("feed_stale", "{} is disconnected"),
    "conflict": ("entries_blocked", "{} has two bars of one label: no entries"),
    "implausible": ("entries_blocked", "{} has a bar far off its last good close: no entries"),
    "unsettled": ("entries_blocked", "{} settles on no price: its stops go on with this bar, no entries yet"),
    "clock": ("entries_blocked", "{} and this machine disagree about the time: no entries"),
}
FEED_BACK = ("fresh", "reconnected")


def _of_feed(what: str, payload: Mapping[str, Any], at: int, symbol: str | None) -> Alert | None:
    subject = symbol or "the feed"
    if what in FEED_TROUBLE:
        kind, text = FEED_TROUBLE[what]
        topic = f"feed {symbol} {what}" if what == "unsettled" else f"feed {symbol}"
        return Alert(kind, text.format(subject), at, symbol, topic, payload)
    if what in FEED_BACK:
        return Alert("recovered", f"{subject} has bars again", at, symbol, f"feed {symbol}", payload)
    return None


def _alert_of_block(payload: Mapping[str, Any], at: int, symbol: str | None) -> Alert | None:
    result = payload.get("result") or {}
    if result.get("status") != "block" or payload.get("amendment") == "keep":
        return None  # a keep that is blocked is the way in which a policy ends
    codes = [str(finding.get("code")) for finding in result.get("findings", ())]
    detail = {"proposal_hash": payload.get("proposal_hash"), "codes": codes}
    what = "a plan" if payload.get("amendment") is None else "a stop move"
    return Alert(
        "plan_blocked", f"{what} for {symbol} was blocked: {', '.join(codes)}", at, symbol, detail=detail
    )
