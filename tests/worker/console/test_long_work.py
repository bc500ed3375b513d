"""Texts that are checked and refined by the console, and backtests that say how far they are."""

import json

from tests.worker.console.asked import ask, token_of

TEXT = "The mean R of buys_strength was 9.99R."


def test_text_is_held_against_a_run_and_refined_without_a_row_more(planted):
    before = planted.run("journal", "latest", "--jsonl").stdout

    async def steps(client):
        token = await token_of(client)
        checked = await client.post("/api/factcheck", json={"text": TEXT}, headers=token)
        body = {"text": TEXT, "preset": "quality"}
        refined = await client.post("/api/deliberate", json=body, headers=token)
        refused = [
            await client.post("/api/deliberate", json=body | {"preset": "none"}, headers=token),
            await client.post("/api/factcheck", json={"text": "\0"}, headers=token),
            await client.post("/api/factcheck", json={"text": TEXT, "report": "ffff"}, headers=token),
        ]
        return checked, refined, [answer.status_code for answer in refused]

    checked, refined, refused = ask(steps)
    assert [claim["verdict"] for claim in checked.json()["claims"]] == ["contradicted"]
    assert (refined.status_code, refined.json()["run_id"]) == (200, checked.json()["run_id"])
    assert refused == [422, 422, 422]
    assert planted.run("journal", "latest", "--jsonl").stdout == before


def test_backtest_streams_how_far_it_is_until_its_run_is_stored(shell):
    async def steps(client):
        token = await token_of(client)
        form = {"symbols": ["AAPL"], "end": "2000-03-31"}
        started = await client.post("/api/backtests", json=form, headers=token)
        text = (await client.get(f"/api/backtests/{started.json()['id']}/events", timeout=120)).text
        return started.status_code, text, (await client.get("/api/backtests/99/events")).status_code

    code, text, unknown = ask(steps)
    lines = text.replace("\r\n", "\n").splitlines()
    documents = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert (code, unknown) == (202, 404)
    assert [line for line in lines if line.startswith("event: ")][-1] == "event: end"
    assert documents[0]["state"] == "running"
    assert (documents[-1]["state"], documents[-1]["run_id"]) == ("finished", "r0001")
