"""Alert for a person: what happened, as one message, whatever surface carries it.

Alerts are made from journal rows and from the worker's own events; nothing is sent here. `WaitingChanges`
finds what waits for a person's decision. A change plan waits until it is decided or expires. What the program
may not do at all it declines, and a person learns how to do it all the same: an action which met a bound, and
an experiment that has ended, since none becomes active by itself. What the evidence did not carry, or what is
so already, waits for nobody.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from schemas.canonical import ns_to_datetime
from schemas.settings.live import NotificationKind
from schemas.vocabulary import EXPERIMENT_ENDED

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
# What anomalies of a feed mean to a person: kind, text about the symbol, and what its topic adds.
FEED_ALERTS: dict[str, tuple[NotificationKind, str, str]] = {
    "stale": ("feed_stale", "{} has no bars", ""),
    "disconnected": ("feed_stale", "{} is disconnected", ""),
    "conflict": ("entries_blocked", "{} has two bars of one label: no entries", ""),
    "implausible": ("entries_blocked", "{} has a bar far off its last good close: no entries", ""),
    "unsettled": (
        "entries_blocked",
        "{} settles on no price: its stops go on with this bar, no entries yet",
        " unsettled",
    ),
    "clock": ("entries_blocked", "{} and this machine disagree about the time: no entries", ""),
    "fresh": ("recovered", "{} has bars again", ""),
    "reconnected": ("recovered", "{} has bars again", ""),
}
FAILURES = frozenset({"slot_failed", "waker_silent", "look_failed", "worker_died"})
DRAFTED = "two_phase_phase1_complete"
CHANGE_KINDS = frozenset({"replan_verdict", "action_refused", "playbook_version", DRAFTED})
# Refusals by a bound that a person has set, or by a model that overruled the rules.
BOUNDS = frozenset(
    {
        "dropped_by_model",
        "floor",
        "life_too_long",
        "playbook_disabled",
        "risk_out_of_bounds",
        "too_many_experiments",
    }
)
WANTED = ("kind", "parameter", "value", "regime", "direction", "eligible")


@dataclass(frozen=True)
class Alert:
    """One thing that a person may want to know."""

    kind: NotificationKind
    summary: str  # one line
    at: int  # when it happened, ns
    about: str | None = None  # what it is about, for example a symbol
    # what it says something new of: the same kind on one topic is a repetition, another kind is not
    topic: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)  # plain data

    @property
    def key(self) -> str:
        """Names the topic."""
        return self.topic or f"{self.kind} {self.about}"

    def document(self, run_id: str, mode: str) -> dict[str, Any]:
        """What is sent; `text` is what chat services show."""
        return {
            "v": 1,
            "kind": self.kind,
            "severity": SEVERITIES[self.kind],
            "text": f"thinktwice {run_id} ({mode}): {self.summary}",
            "summary": self.summary,
            "run_id": run_id,
            "mode": mode,
            "at": ns_to_datetime(self.at).isoformat(),
            "about": self.about,
            "detail": dict(self.detail),
        }


def of_journal(kind: str, payload: Mapping[str, Any], at: int, symbol: str | None) -> Alert | None:
    """The news in a journal row; None for the many that are none."""
    if kind == "envelope_breach":
        limit = str(payload.get("limit"))
        gone = limit == "account_gone"
        summary = (
            "the account is gone: the run ends" if gone else f"limit {limit} broke: flat, and no entries"
        )
        return Alert("envelope_breach", summary, at, limit, detail=payload)
    if kind == "policy_reflection":
        return _alert_of_block(payload, at, symbol)
    if kind == "feed_anomaly" and payload.get("anomaly") in FEED_ALERTS:
        news, text, adds = FEED_ALERTS[payload["anomaly"]]
        topic = f"feed {symbol}{adds}"
        return Alert(news, text.format(symbol or "the feed"), at, symbol, topic, payload)
    if kind == "error":
        what = f"{payload.get('where')}: {payload.get('type')}"
        return Alert("error", what, at, symbol, f"error {what} {symbol}", payload)
    return None


def _alert_of_block(payload: Mapping[str, Any], at: int, symbol: str | None) -> Alert | None:
    result = payload.get("result") or {}
    if result.get("status") != "block" or payload.get("amendment") == "keep":
        return None  # a keep that is blocked is the way in which a policy ends
    codes = [str(finding.get("code")) for finding in result.get("findings", ())]
    detail = {"proposal_hash": payload.get("proposal_hash"), "codes": codes}
    what = "a plan" if payload.get("amendment") is None else "a stop move"
    summary = f"{what} for {symbol} was blocked: {', '.join(codes)}"
    return Alert("plan_blocked", summary, at, symbol, detail=detail)


def of_worker(event: str, detail: Mapping[str, Any], at: int) -> Alert | None:
    """The news in an event of a process; None for the many that are none."""
    reason = detail.get("reason")
    if event == "safe_mode":
        return _alert_of_safe_mode(detail, at)
    if event == "store_away":
        return Alert("store_away", "the store is away; the worker goes on trying", at, None, "store", detail)
    if event == "store_back":
        return Alert("recovered", "the store is back", at, None, "store", detail)
    if event == "model_failing":
        model, count = detail.get("model"), detail.get("failed_in_a_row")
        summary = f"{model}: {count} calls in a row without a usable reply: {reason}; rules decide instead"
        return Alert("error", summary, at, event, f"{event} {model}", detail)
    if event in FAILURES:
        what = event.replace("_", " ")
        return Alert("error", f"{what}: {reason}" if reason else what, at, event, detail=detail)
    return None


def _alert_of_safe_mode(detail: Mapping[str, Any], at: int) -> Alert:
    reason = detail.get("reason")
    topic = f"safe_mode {reason}"
    if detail.get("change") in ("entered", "raised"):
        summary = f"safe mode, no entries and exits run on: {reason}"
        return Alert("safe_mode", summary, at, reason, topic, detail)
    return Alert("recovered", f"safe mode: {reason} is over", at, reason, topic, detail)


@dataclass
class WaitingChanges:
    """Finds changes of playbooks that wait for a person in the journal rows of one run, in their order."""

    run_id: str
    versions: Callable[[], Mapping[str, int]]  # the active version of each playbook, as it is now
    plans: Callable[[], Collection[str]]  # ids of those that wait now; of none where nobody is asked
    console: str | None = None  # address at which people reach it
    _report: dict[str, str] = field(default_factory=dict, init=False)

    def of(self, kind: str, payload: Mapping[str, Any], at: int) -> Iterator[Alert]:
        """Alert of what waits since a row of `CHANGE_KINDS` is stored."""
        if kind == "replan_verdict":
            self._report = {payload["verdict_id"]: payload["report_id"]}
            for refusal in payload["verdict"]["refused"]:
                yield from self._alert_of_refusal(refusal, payload["report_id"], at)
        elif kind == "action_refused":
            yield from self._alert_of_refusal(payload, self._report.get(payload["verdict_id"]), at)
        elif kind == "playbook_version" and payload["reason"] == EXPERIMENT_ENDED:
            yield self._alert_of_end(payload, at)
        elif kind == DRAFTED and payload["plan_id"] in self.plans():
            yield self._alert_of_plan(payload, at)

    def _alert_of_plan(self, drafted: Mapping[str, Any], at: int) -> Alert:
        plan, name = drafted["plan"], drafted["plan_id"]
        until = f"{ns_to_datetime(plan['expires_at']):%Y-%m-%d %H:%M} UTC"
        command = f"thinktwice plans show {name} --run {self.run_id}"
        detail = {"plan_id": name, "plan_hash": drafted["plan_hash"], "expires_at": plan["expires_at"]}
        detail |= {"steps": [step["effect"] for step in plan["steps"]], "command": command}
        summary = f"plan {name} waits for a decision until {until}: {plan['expected_outcome']}"
        for old in drafted.get("replaces", ()):
            summary += f" (in place of plan {old['plan_id']}: {'; '.join(old['diff'])})"
        about = next(iter(plan["basis"]["versions"]), None)
        topic = f"plan {name} {drafted['revision']}"
        where = f"`{command}`"
        if self.console is not None:
            where = detail["url"] = f"{self.console}/plans/{name}?run={self.run_id}"
        return Alert("approval_waits", f"{summary}; {where}", at, about, topic, detail)

    def _alert_of_refusal(
        self, refusal: Mapping[str, Any], report_id: str | None, at: int
    ) -> Iterator[Alert]:
        action, code, name = refusal["action"], refusal["code"], refusal["action"]["playbook_id"]
        if code not in BOUNDS or name is None:
            return
        wanted = {key: action[key] for key in WANTED if action[key] is not None}
        version = self.versions().get(name)
        shown = " ".join(
            f"{key} {value}" if key == "eligible" else str(value) for key, value in wanted.items()
        )
        summary = f"the judge wanted {shown} of {name} version {version}: declined, {refusal['reason']}"
        detail = {"playbook_id": name, "version": version, "wanted": wanted, "report_id": report_id}
        detail |= {"code": code, "reason": refusal["reason"], "evidence": action["reason"]}
        yield self._alert_of_change(summary, f"change {name} {shown} {code}", detail, at)

    def _alert_of_end(self, version: Mapping[str, Any], at: int) -> Alert:
        name, number = version["playbook_id"], version["version"]
        wanted = {"kind": "open_experiment"}
        detail = {"playbook_id": name, "version": number, "wanted": wanted, "report_id": version["report_id"]}
        detail |= {"code": "experiment_ended", "reason": EXPERIMENT_ENDED, "evidence": version["evidence"]}
        summary = f"the judge's experiment {name} version {number} has ended and becomes active only by you"
        return self._alert_of_change(summary, f"change {name} {number}", detail, at)

    def _alert_of_change(self, summary: str, topic: str, detail: dict[str, Any], at: int) -> Alert:
        name, report_id = detail["playbook_id"], detail["report_id"]
        command = (
            f"thinktwice playbooks history {name} --run {self.run_id}"
            if report_id is None
            else f"thinktwice replan {report_id} --run {self.run_id} --write DIR"
        )
        detail["command"] = command
        return Alert("approval_waits", f"{summary}; `{command}`", at, name, topic, detail)
