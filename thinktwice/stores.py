"""Which store a script means, and how it keeps a run there."""

from collections.abc import Callable, Sequence
from typing import Any

from schemas.errors import ConfigError
from schemas.settings import Settings
from services.journal.chain import JournalRow
from thinktwice.inputs import Inputs, in_arguments
from worker.feeds.replay import rows_of
from worker.feeds.selected_bars import describe
from worker.runs.kept_run import keep_beside
from worker.runs.store_run import new_run
from worker.settings import load_settings

NAME = "script"


def store_address(db: str | None, settings: Settings | None = None) -> str:
    """The store that was named, else that of settings that name one, else that of the commands.

    Raises:
        ConfigError: what was named is no URL of a store.
    """
    from services.store.urls import parse_url

    if db is not None and not isinstance(db, str):
        raise ConfigError(f"db {db!r}: give the URL of a store, such as 'sqlite:///thinktwice.db'")
    try:
        if db is not None:
            parse_url(db)
    except ConfigError as error:
        raise in_arguments(error) from error
    if db is None and settings is not None and settings.runtime.db != Settings().runtime.db:
        return settings.runtime.db
    return load_settings(flags={"runtime.db": ("db", db)}, word="argument").settings.runtime.db


async def store_run(
    inputs: Inputs,
    own: Sequence[str],
    rows: Sequence[JournalRow],
    document: Callable[[str, str], dict[str, Any]],
    address: str,
) -> str:
    """Store a finished run whole, or find it; its id.

    Raises:
        StoreError: the store cannot take it; then it holds nothing of it.
    """
    from services.store import open_store

    runtime = inputs.settings.runtime.model_copy(update={"db": address})
    settings = inputs.settings.model_copy(update={"runtime": runtime})
    data = describe(inputs.bars, settings, of_frame=inputs.of_frame)
    data |= keep_beside(inputs.playbooks if inputs.own_playbooks else (), own, inputs.own_features())
    bars = rows_of(inputs.bars, 0, inputs.bars.shape[0]) if inputs.of_frame else []
    async with await open_store(address, create=True) as store:
        run = new_run(settings, NAME, "backtest", data)
        run_id, _ = await store.runs.keep(run, rows, bars, lambda run_id: document(run_id, store.url))
    return run_id
