"""`thinktwice paper` as a process: asked while it trades, told what is news, stopped in order."""

import asyncio
import json
import signal

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.worker.operations.receiver import receiving
from tests.worker.operations.test_worker_is_operated import Process, ask

WORDS = ("--feed", "replay", "--symbols", "AAPL,MSFT", "--from", "2004-01-01")
BARS_A_SECOND = 40


def value(text, name):
    return next(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    )


def test_paper_process_is_asked_while_it_trades_and_tells_of_a_breach(tmp_path):
    async def play():
        async with (
            receiving() as there,
            Process.started(
                tmp_path,
                *WORDS,
                "--speed",
                str(86_400 * BARS_A_SECOND),
                command="paper",
                THINKTWICE_RUNTIME__OPERATIONS__PORT="0",
                THINKTWICE_RUNTIME__OPERATIONS__LOG_FORMAT="json",
                THINKTWICE_ENVELOPE__KILL_SWITCH="true",
                THINKTWICE_WEBHOOK_URL=there.url,
            ) as paper,
        ):
            port = (await paper.until("endpoint_open"))["port"]
            await asyncio.wait_for(there.arrived.wait(), 60)
            seen = [await ask(port, path) for path in ("/ready", "/metrics", "/status")]
            paper.process.send_signal(signal.SIGTERM)
            return await paper.ended(), paper.records, seen, there.got

    (code, _), records, (ready, metrics, status), got = asyncio.run(play())
    assert code == 0, records
    assert (ready.status, ready.body) == (200, "ready\n")
    assert value(metrics.body, "thinktwice_bars_validated_total") > 0
    assert value(metrics.body, "thinktwice_kill_switch") == 1
    assert value(metrics.body, "thinktwice_store_up") == 1
    assert set(json.loads(status.body)["last_bars"]) == {"AAPL", "MSFT"}
    assert json.loads(got[0][2])["kind"] == "envelope_breach"
    assert {record["run_id"] for record in records if record["event"] == "endpoint_open"} == {"r0001"}
