"""Changes of playbooks that wait for a person: what the judge wanted and the program does not do by itself.

A change plan waits until it is decided or expires. What the program may not do at all it declines, the
journal has it, and a person is told how to do it all the same: an action which met a bound, and an experiment
that has ended, since one never becomes active by itself. What the evidence did not carry, or what is so
already, waits for no person.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from schemas.canonical import ns_to_datetime
from services.playbooks.lifecycle import EXPERIMENT_ENDED
from worker.operations.alerts import Alert

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


class WaitingChanges:
    """Finds them in the journal rows of one run, in their order.

    Args:
        run_id: of the run.
        versions: the active version of each playbook, as it is now.
        plans: ids of the change plans that wait, as it is now; where nobody is asked none does.
    """

    def __init__(
        self,
        run_id: str,
        versions: Callable[[], Mapping[str, int]],
        plans: Callable[[], Collection[str]],
    ) -> None:
        self._run_id = run_id
        self._plans = plans
        self._versions = versions
        self._report: dict[str, str] = {}

    def of(self, kind: str, payload: Mapping[str, Any], at: int) -> Iterator[Alert]:
        """Alert of what waits since a row of `CHANGE_KINDS` is stored."""
        if kind == "replan_verdict":
            self._report = {payload["verdict_id"]: payload["report_id"]}
            for refusal in payload["verdict"]["refused"]:
                yield from self._alert_of_refusals(refusal, payload["report_id"], at)
        elif kind == "action_refused":
            yield from self._alert_of_refusals(payload, self._report.get(payload["verdict_id"]), at)
        elif kind == "playbook_version" and payload["reason"] == EXPERIMENT_ENDED:
            yield self._alert_of_end(payload, at)
        elif kind == DRAFTED and payload["plan_id"] in self._plans():
            yield self._alert_of_plan(payload, at)

    def _alert_of_plan(self, drafted: Mapping[str, Any], at: int) -> Alert:
        plan, name = drafted["plan"], drafted["plan_id"]
        until = f"{ns_to_datetime(plan['expires_at']):%Y-%m-%d %H:%M} UTC"
        command = f"thinktwice plans show {name} --run {self._run_id}"
        detail = {"plan_id": name, "plan_hash": drafted["plan_hash"], "expires_at": plan["expires_at"]}
        detail |= {"steps": [step["effect"] for step in plan["steps"]], "command": command}
        said = f"plan {name} waits for a decision until {until}: {plan['expected_outcome']}"
        for old in drafted.get("replaces", ()):
            said += f" (in place of plan {old['plan_id']}: {'; '.join(old['diff'])})"
        about = next(iter(plan["basis"]["versions"]), None)
        topic = f"plan {name} {drafted['revision']}"
        return Alert("approval_waits", f"{said}; `{command}`", at, about, topic, detail)

    def _alert_of_refusals(
        self, refusal: Mapping[str, Any], report_id: str | None, at: int
    ) -> Iterator[Alert]:
        action, code, name = refusal["action"], refusal["code"], refusal["action"]["playbook_id"]
        if code not in BOUNDS or name is None:
            return
        wanted = {key: action[key] for key in WANTED if action[key] is not None}
        version = self._versions().get(name)
        words, reason = _words(wanted), refusal["reason"]
        detail = {"playbook_id": name, "version": version, "wanted": wanted, "report_id": report_id}
        detail |= {"code": code, "reason": reason, "evidence": action["reason"]}
        said = f"the judge wanted {words} of {name} version {version}: declined, {reason}"
        yield self._news(said, f"change {name} {words} {code}", detail, at)

    def _alert_of_end(self, version: Mapping[str, Any], at: int) -> Alert:
        name, number = version["playbook_id"], version["version"]
        wanted = {"kind": "open_experiment"}
        detail = {"playbook_id": name, "version": number, "wanted": wanted, "report_id": version["report_id"]}
        detail |= {"code": "experiment_ended", "reason": EXPERIMENT_ENDED, "evidence": version["evidence"]}
        said = f"the judge's experiment {name} version {number} has ended and becomes active only by you"
        return self._news(said, f"change {name} {number}", detail, at)

    def _news(self, said: str, topic: str, detail: dict[str, Any], at: int) -> Alert:
        name, report_id = detail["playbook_id"], detail["report_id"]
        command = (
            f"thinktwice playbooks history {name} --run {self._run_id}"
            if report_id is None
            else f"thinktwice replan {report_id} --run {self._run_id} --write DIR"
        )
        return Alert(
            "approval_waits", f"{said}; `{command}`", at, name, topic, {**detail, "command": command}
        )


def _words(wanted: Mapping[str, Any]) -> str:
    kind, *rest = (f"{key} {value}" if key == "eligible" else str(value) for key, value in wanted.items())
    return " ".join([kind, *rest])
