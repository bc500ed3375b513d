"""A session whose settings begin with the kill switch on: it watches, it says so, and it never enters."""

from schemas.settings import EnvelopeSettings, Settings
from tests.worker.test_session_wires import finished, payloads, session

PULLED = Settings(envelope=EnvelopeSettings(kill_switch=True))


def test_session_begun_with_the_kill_switch_on_never_enters_and_every_evaluation_says_so() -> None:
    rows = finished(session(PULLED))
    assert payloads(rows, "order_accepted") == payloads(rows, "entry_filled") == []
    assert [payload["limit"] for payload in payloads(rows, "envelope_breach")] == ["kill_switch"]
    ended = payloads(rows, "policy_evaluation")
    assert len(ended) > 20
    assert {episode["outcome"] for episode in ended} == {"abstained"}
    assert all("kill_switch" in reason["reason"] for reason in ended)
    seen = {payload["snapshot"]["risk"]["kill_switch"] for payload in payloads(rows, "policy_snapshot")}
    assert seen == {True}


def test_session_whose_operator_releases_the_switch_of_the_settings_enters_again() -> None:
    made = session(PULLED)
    made.engine.set_kill_switch(False)
    assert payloads(finished(made), "order_accepted") != []
