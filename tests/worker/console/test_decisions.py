"""Plans decided in the console: by the hash that was shown, once, by an operator, with a row in the audit."""

import re

from tests.worker.cli.test_plans import LESS, made, risk_of
from tests.worker.console.asked import ask, get, token_of


def test_waiting_plan_is_approved_by_the_hash_that_the_page_shows(planted):
    plan = made(planted)

    async def steps(client):
        token = await token_of(client, f"/plans/{plan['plan_id']}")
        page = (await client.get(f"/plans/{plan['plan_id']}", headers={"accept": "text/html"})).text
        path = f"/api/plans/{plan['plan_id']}"
        done = await client.post(f"{path}/approve", json={"hash": plan["hash"]}, headers=token)
        return page, done, (await client.get("/api/audit")).json()

    page, done, audit = ask(steps)
    assert plan["hash"] in page
    assert plan["understanding"] in page
    changes = [change for step in plan["steps"] for change in step["changes"]]
    assert 0.002 in [change["to"] for change in changes]
    for change in changes:  # unrounded: a fraction that reads 0.00 would be decided on blindly
        assert f"<del>{change['from']}</del> → <ins>{change['to']}</ins>" in page
    assert (done.status_code, done.json()["state"]) == (200, "completed")
    assert risk_of(planted) == 0.002
    assert [(entry["action"], entry["outcome"]) for entry in audit] == [("approve", "done")]
    assert "local, no login" in audit[0]["who"]
    assert done.json()["decided"]["by"] == audit[0]["who"]


def test_another_hash_than_the_newest_is_a_conflict_and_decides_nothing(planted):
    plan = made(planted)

    async def steps(client):
        token, path = await token_of(client), f"/api/plans/{plan['plan_id']}"
        edit = {"hash": plan["hash"], "set": ["steps.1.value=0.001"]}
        edited = await client.post(f"{path}/edit", json=edit, headers=token)
        stale = await client.post(f"{path}/approve", json={"hash": plan["hash"]}, headers=token)
        other = edit | {"set": ["steps.1.value=0.002"]}
        again = await client.post(f"{path}/edit", json=other, headers=token)
        return edited.json(), stale, again, (await client.get(path)).json()

    edited, stale, again, now = ask(steps)
    assert (stale.status_code, again.status_code) == (409, 409)
    assert all("revision 2" in answer.json()["error"] for answer in (stale, again))
    assert (now["state"], now["hash"], now["revision"]) == ("awaiting_approval", edited["hash"], 2)
    assert now["revisions"][0]["changes"][0]["to"] == 0.001


def test_second_decision_is_told_who_was_first(planted):
    plan = made(planted, LESS)

    async def steps(client):
        token, path = await token_of(client), f"/api/plans/{plan['plan_id']}"
        first = await client.post(f"{path}/cancel", headers=token)
        return first, await client.post(f"{path}/approve", json={"hash": plan["hash"]}, headers=token)

    first, second = ask(steps)
    assert (first.json()["state"], second.status_code) == ("cancelled", 409)
    assert "local, no login" in second.json()["error"]


def test_rolled_back_plan_returns_its_playbook(planted):
    before = made(planted)

    async def steps(client):
        token, path = await token_of(client), f"/api/plans/{before['plan_id']}"
        await client.post(f"{path}/approve", json={"hash": before["hash"]}, headers=token)
        return await client.post(f"{path}/rollback", headers=token)

    assert ask(steps).json()["state"] == "rolled_back"
    assert risk_of(planted) != 0.002


def test_plan_of_no_id_and_edit_of_nothing_are_refused(planted):
    plan = made(planted)

    async def steps(client):
        token, path = await token_of(client), f"/api/plans/{plan['plan_id']}"
        found = [await client.get("/api/plans/ffffffff"), await client.get("/api/plans/no-id")]
        body = {"hash": plan["hash"]}
        return [
            answer.status_code
            for answer in (*found, await client.post(f"{path}/edit", json=body, headers=token))
        ]

    assert ask(steps) == [404, 422, 422]


def test_kill_switch_of_a_run_that_nothing_trades_is_a_conflict(planted):
    async def steps(client):
        token = await token_of(client)
        unsure = await client.post("/api/runs/latest/kill", json={"on": True}, headers=token)
        sure = await client.post("/api/runs/latest/kill", json={"on": True, "sure": True}, headers=token)
        return unsure.status_code, sure

    unsure, sure = ask(steps)
    assert (unsure, sure.status_code) == (422, 409)
    assert "nothing trades it" in sure.json()["error"]


def test_plan_that_waits_stands_first_with_its_deadline(planted):
    plan = made(planted)
    page = get("/plans", accept="text/html").text
    left_s = re.search(r'data-left="(\d+)" data-clock="wall"', page)
    assert left_s is not None
    assert 0 < int(left_s[1]) <= (plan["expires_at"] - plan["made_at"]) // 10**9
    assert page.index("awaiting approval") < page.index(plan["run_id"]) or plan["plan_id"] in page
