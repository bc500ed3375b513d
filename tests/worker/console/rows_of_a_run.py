"""A stored run on paper whose rows are given one by one, with the bars that it has taken."""

import asyncio
import time

from schemas.canonical import canonical_json
from schemas.settings import Settings
from services.feeds.port import BarRow
from services.journal.chain import GENESIS_HASH, JournalRow, link
from services.journal.kinds import GENESIS
from services.store import open_store
from services.store.records import NewRun
from tests.worker.console.asked import DB
from trading_core.live.growing_bars import Bar

DAY = 86_400 * 10**9
START = 12_000 * DAY
SYMBOLS = ("AAA", "BBB")
DATA = {"timeframe": "1d", "label": "open", "symbols": [*SYMBOLS]}


def stored(events, bars=3, signs=None):
    """The id of a new run of days with rows of (kind, symbol, payload, telemetry), one a day, with signs."""

    async def work():
        settings = Settings()
        new = NewRun(
            "rows", time.time_ns(), "paper", settings.config_hash, settings.model_dump(mode="json"), DATA, {}
        )
        taken = [(number, row_of_bars(number)) for number in range(bars)]
        async with await open_store(DB, create=True) as store:
            run_id = (await store.runs.create(new)).run_id
            lease = await store.leases.take(run_id, "w", 10**9)
            assert lease is not None
            await store.trading.commit(lease, run_id, taken, _rows([(GENESIS, None, {}, None), *events]))
            if signs is not None:
                await store.trading.say(lease, run_id, signs)
            return run_id

    return asyncio.run(work())


def row_of_bars(number):
    return BarRow(START + number * DAY, dict.fromkeys(SYMBOLS, Bar(1.0, 1.0, 1.0, 1.0, 1.0)))


def _rows(events):
    rows: list[JournalRow] = []
    for seq, (kind, symbol, payload, telemetry) in enumerate(events):
        before, at, text = rows[-1].hash if rows else GENESIS_HASH, START + seq * DAY, canonical_json(payload)
        own = link(before, seq=seq, ts_event=at, known_at=at, kind=kind, symbol=symbol, payload=text)
        told = None if telemetry is None else canonical_json(telemetry)
        rows.append(JournalRow(seq, at, at, kind, symbol, text, told, before, own))
    return rows
