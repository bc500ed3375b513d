"""What the commands `ablate`, `check`, `faults`, `gate` and `trials` find out, for a script."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from schemas.errors import ConfigError, DataError
from schemas.reflection import PolicyLevelReflectionRequest
from schemas.settings import Settings
from thinktwice.backtesting import inputs_of
from thinktwice.boundary import trims_errors
from thinktwice.inputs import Playbooks, in_arguments, path_of, playbooks_of, settings_of
from thinktwice.loops import cancellable, cancelled_so_far, in_own_loop
from thinktwice.parts import CriticParts, ModelPart, asked_models, own_model, own_parts, settings_of_model
from thinktwice.result import BacktestResult, frame_of
from thinktwice.stored import load
from thinktwice.stores import store_address
from worker.feeds.files.bar_table import BarTable
from worker.pages.ablation_pages import ablation_markdown
from worker.pages.gate_text import gate_parts
from worker.pages.study_text import check_parts, faults_parts, trials_parts
from worker.pages.text_parts import text_of
from worker.runs.progress import Progress
from worker.runs.readiness import ready_engine
from worker.studies.faults.bank import read_bank
from worker.studies.faults.right_plans import embedded_index, plans_of_run
from worker.studies.faults.study import Asking, study_faults
from worker.studies.graded_trades import Grading, compare_logs, gate_document
from worker.studies.plan_check.check_request import parse_request, read_request
from worker.studies.plan_check.plan_check import check_document, check_plan

if TYPE_CHECKING:
    import pandas as pd

    from thinktwice.inputs import Inputs
    from worker.pages.text_parts import Part

    Describe = staticmethod[[dict[str, Any]], Iterable[Part]]

NAME = "script"


@dataclass(frozen=True)
class Study:
    """What a study found; `document` is what its command prints with `--json`, `print` shows the rest."""

    _parts_of: ClassVar["Describe"]
    document: dict[str, Any]

    def __str__(self) -> str:
        return text_of(self._parts_of(self.document))

    __repr__ = __str__


class AblationResult(Study):
    """What each tier is worth; returns and drawdowns are fractions, R after costs."""

    _parts_of = staticmethod(lambda document: ablation_markdown(document).splitlines())

    @cached_property
    def arms(self) -> "pd.DataFrame":
        """Each arm with the figures of its run."""
        shown = ({"arm": arm["arm"], **(arm["run"] or {})} for arm in self.document["arms"])
        return frame_of(shown, index="arm")

    @cached_property
    def tiers(self) -> "pd.DataFrame":
        """Each tier with its answer: `helped`, `hurt` or `unknown`, and why."""
        return frame_of(self.document["tiers"], index="tier")

    @cached_property
    def shadow_ledger(self) -> "pd.DataFrame":
        """What refused plans would have made, on paper and after costs."""
        return frame_of(self.document["shadow_ledger"])


class CheckResult(Study):
    """The verdict on a plan."""

    _parts_of = staticmethod(check_parts)

    @property
    def status(self) -> str:
        """`pass`, `revise`, `block`, or `error` where a check itself failed."""
        text: str = self.document["status"]
        return text

    @cached_property
    def findings(self) -> "pd.DataFrame":
        """Findings with their check, in the order in which checks run."""
        rows = (
            {"check": name, **finding}
            for name, found in self.document["findings"].items()
            for finding in found
        )
        return frame_of(rows, columns=("check", "code", "severity", "message", "evidence", "remedy"))


class FaultsResult(Study):
    """What the checks stop of known faults; `document["right"]` says what they refuse of right plans."""

    _parts_of = staticmethod(faults_parts)

    @cached_property
    def kinds(self) -> "pd.DataFrame":
        """Each kind with how often it was planted, stopped and passed; `codes` say by what."""
        return frame_of(self.document["kinds"], index="name")


class GateResult(Study):
    """What resolved trades have proven; means and bounds in R."""

    _parts_of = staticmethod(gate_parts)

    @property
    def family(self) -> dict[str, Any]:
        """The tested family: size, q, and what e-BH selects."""
        payload: dict[str, Any] = self.document["family"]
        return payload

    @cached_property
    def clusters(self) -> "pd.DataFrame":
        """Every playbook, regime and timeframe with its grade at the last look."""
        return frame_of(self.document["clusters"])


class TrialsResult(Study):
    """What was tried in a store, and what choosing the best of it is worth."""

    _parts_of = staticmethod(trials_parts)

    @cached_property
    def ranges(self) -> "pd.DataFrame":
        """What was tried by bars, as the ledger of trials has it."""
        return frame_of(self.document["ranges"])

    @cached_property
    def selection(self) -> "pd.DataFrame":
        """The best run of each range with `pbo`, `superior_p`, `superior` and `deflated_sharpe`."""
        return frame_of(self.document["selection"]["ranges"])


@trims_errors
def ablate(
    bars: "pd.DataFrame | str | Path | None" = None,
    *,
    playbooks: Playbooks = None,
    settings: Settings | str | Path | None = None,
    symbols: Sequence[str] | None = None,
    timeframe: str | None = None,
    tz: str | None = None,
    start: str | None = None,
    end: str | None = None,
    seeds: int = 20,
    db: str | None = None,
    keep_all: bool = False,
    **changes: Any,
) -> AblationResult:
    """Measure what each tier is worth: the same bars with it and without it, and against a coin.

    Args:
        bars: as `backtest` takes them, and so are the arguments up to `end`.
        playbooks: see `backtest`.
        settings: see `backtest`.
        symbols: see `backtest`.
        timeframe: see `backtest`.
        tz: see `backtest`.
        start: see `backtest`.
        end: see `backtest`.
        seeds: runs of the random veto, each with its own seed.
        db: URL of the store that keeps the runs; None keeps none.
        keep_all: whether it keeps the run of every seed.
        changes: other settings by `SECTION__NAME`.

    Raises:
        DataError: the bars cannot be used.
        ConfigError: a setting, a playbook or the store is wrong.
    """
    before = cancelled_so_far()
    if not isinstance(seeds, int) or isinstance(seeds, bool) or seeds < 0:
        raise ConfigError(f"seeds is {seeds!r}: give 0 or more, a whole number")
    address = None if db is None else store_address(db)
    inputs = inputs_of(bars, playbooks, settings, None, symbols, timeframe, tz, "open", start, end, changes)
    ready_engine()
    if address is not None:
        return AblationResult(in_own_loop(_measure(inputs, address, seeds, keep_all), before))
    with TemporaryDirectory(prefix="thinktwice-") as folder:
        url = f"sqlite:///{Path(folder) / 'ablation.sqlite'}"
        return AblationResult(in_own_loop(_measure(inputs, url, seeds, keep_all), before))


async def _measure(inputs: "Inputs", url: str, seeds: int, keep_all: bool) -> dict[str, Any]:
    from services.store import open_store
    from worker.studies.ablation.worth import measured_worth

    @contextmanager
    def watch(title: str) -> Iterator[Progress]:
        yield cancellable()

    async with await open_store(url, create=True) as store:
        return await measured_worth(
            inputs.settings, inputs.bars, inputs.playbooks, store, watch,
            name=NAME, seeds=seeds, keep_all=keep_all,
        )  # fmt: skip


@trims_errors
def check(
    request: PolicyLevelReflectionRequest | Mapping[str, Any] | str | Path,
    *,
    settings: Settings | str | Path | None = None,
    reflection: Literal["deterministic", "full"] | None = None,
    critics: CriticParts = (),
    model: ModelPart = None,
    **changes: Any,
) -> CheckResult:
    """Reflect on a plan of your own.

    Args:
        request: the request, the same as a dict, or the path of its JSON file.
        settings: `Settings`, or the path of a TOML file; None: the defaults.
        reflection: `deterministic`, or `full`, which asks a model.
        critics: see `backtest`.
        model: see `backtest`.
        changes: other settings by `SECTION__NAME`.

    Raises:
        DataError: the file or the dict holds no request; it names the place and the value.
        ConfigError: a setting is wrong, or there is no model to ask.
    """
    answering = own_model(model)
    shown = settings_of(
        settings, {"reflection__mode": reflection} | settings_of_model(model, answering), changes
    )
    resolved, models = asked_models(shown, answering)
    plan = _request(request)
    done = in_own_loop(check_plan(plan, resolved, os.environ, own_parts(None, None, critics).critics, models))
    return CheckResult(check_document(plan, resolved, done))


def _request(given: PolicyLevelReflectionRequest | Mapping[str, Any] | str | Path) -> Any:
    if isinstance(given, PolicyLevelReflectionRequest):
        return given
    if isinstance(given, Mapping):
        try:
            text = json.dumps(given)
        except (TypeError, ValueError) as error:
            raise DataError(f"request: {error}") from error
        return parse_request(text.encode(), "request")
    return read_request(str(given))


@trims_errors
def faults(
    run: BacktestResult | str | None = None,
    *,
    bank: str | Path | None = None,
    plans: int = 40,
    reader: bool = False,
    strategist: bool = False,
    least: float | None = None,
    settings: Settings | str | Path | None = None,
    model: ModelPart = None,
    db: str | None = None,
    **changes: Any,
) -> FaultsResult:
    """Plant known faults into plans that pass, and see which check stops each.

    Args:
        run: whose plans: a result, or the id of a stored run; None: a run by rules over embedded bars.
        bank: TOML file with faults of your own, beside the forty.
        plans: into how many each is planted, evenly spread.
        reader: whether the second reader is asked where rules let a plan pass.
        strategist: whether a model proposes the plans, at snapshots of the run.
        least: share of each kind that has to be stopped; `below_least` of the document names the others.
        settings: of a new run, and the `llm` of the models.
        model: see `backtest`.
        db: URL of the store that holds the run; None: as `load` has it.
        changes: other settings by `SECTION__NAME`.

    Raises:
        ConfigError: the bank, a setting or the run cannot be used, or there is no model to ask.
    """
    if not isinstance(plans, int) or isinstance(plans, bool) or plans < 1:
        raise ConfigError(f"plans is {plans!r}: give 1 or more, a whole number")
    if least is not None and not (isinstance(least, int | float) and 0.0 <= least <= 1.0):
        raise ConfigError(f"least is {least!r}: give a share from 0 to 1")
    if not (run is None or isinstance(run, str | BacktestResult)):
        raise ConfigError(f"run is {run!r}: give a result, or the id of a stored run")
    kinds, answering = read_bank(path_of("bank", bank)), own_model(model)
    mode = {
        "reflection__mode": "full" if reader else None,
        "policy_loop__strategist": "model" if strategist else None,
    }
    given, models = asked_models(
        settings_of(settings, mode | settings_of_model(model, answering), changes), answering
    )
    found = load(run, db=db) if isinstance(run, str) else run
    if found is None:
        ready_engine()
        request, index = given, in_own_loop(embedded_index(given))
    else:
        index, parts = found.index, {"llm": given.llm, "runtime": given.runtime}
        request = found.settings.model_copy(update=parts)
    right = plans_of_run(index, request, strategist=strategist)
    asking = Asking(reader, strategist, plans, models)
    return FaultsResult(in_own_loop(study_faults(right, kinds, request, os.environ, asking, least)))


@trims_errors
def gate(
    trades: "pd.DataFrame | str | Path",
    *,
    settings: Settings | str | Path | None = None,
    looks: Literal["daily", "weekly", "monthly"] | int | None = None,
    mode: Literal["graded", "runbook_or", "significance_only"] | None = None,
    reference: float | None = None,
    tz: str | None = None,
    playbooks: Playbooks = None,
    read: str | None = None,
    columns: Mapping[str, str] | None = None,
    trials: int | None = None,
    against: "pd.DataFrame | str | Path | None" = None,
    **changes: Any,
) -> GateResult:
    """Grade resolved trades: what they have proven, what they could have, and what may follow.

    Args:
        trades: a DataFrame with `entry_time`, `exit_time` and `r`, and `playbook`, `regime` and `timeframe`
            where they are known, such as `trades` of a result; one that `read` knows; or the path of a file.
        settings: `Settings`, or the path of a TOML file; None: the defaults.
        looks: look by look as the schedule would have, or every so many trades; None: one at the end.
        mode: how the gate decides; None: as the settings have it.
        reference: what trades are held against, in R.
        tz: zone of times that carry none.
        playbooks: those whose declared cells join the tested family.
        read: program that wrote the table: freqtrade, backtesting.py, vectorbt, nautilus, quantconnect, mt5
            or tradingagents; None: as its columns say.
        columns: name of the column of single roles, such as `{"r": "Result"}` or `{"stop": "SL"}`.
        trials: variants tried before this one, itself among them; they share the level.
        against: another log of the same dates: `document["against"]` says which one makes more, in pairs.
        changes: other settings by `SECTION__NAME`.

    Raises:
        DataError: the table cannot be used; it names the row, the column and the next step.
        ConfigError: a setting or `looks` is wrong.
    """
    resolved = settings_of(settings, {"gate__mode": mode, "runtime__tz": tz}, changes)
    books = tuple(playbooks_of(playbooks) or ())
    given = dict(columns or {})
    try:
        request = Grading(
            resolved, None if looks is None else str(looks), reference, books, read, given, trials
        )
        found = request.read(_table(trades))
        document = gate_document(request.grade(found), resolved, found, trials)
        if against is not None:
            document["against"] = compare_logs(found, request.read(_table(against), found.unit), resolved)
    except (DataError, ConfigError) as error:
        raise in_arguments(error) from error
    return GateResult(document)


def _table(trades: "pd.DataFrame | str | Path") -> Path | BarTable:
    if isinstance(trades, str | Path):
        return Path(trades)
    unnamed = getattr(getattr(trades, "index", None), "names", None) == [None]
    # Rows that were picked keep their numbers as an index: those make no two of them differ.
    rows = trades.reset_index(drop=True) if unnamed else trades
    return BarTable.of_frame(rows, "trades", "at least one trade")


@trims_errors
def trials(db: str | None = None) -> TrialsResult:
    """Is the best of what was tried real? Each range of bars with all that finished runs of a store show.

    Args:
        db: URL of the store; None: as `load` has it.

    Raises:
        ConfigError: there is no such store, or arch is not installed (the extra `research`).
        StoreError: a run or the ledger of trials is not what was written.
    """
    return TrialsResult(in_own_loop(_trials(store_address(db))))


async def _trials(address: str) -> dict[str, Any]:
    from services.store import open_store
    from worker.review.selected_runs import selected_runs
    from worker.runs.trials import list_ranges

    async with await open_store(address, create=False) as store:
        found = await store.trials.all()
        return {"ranges": list_ranges(found), "selection": await selected_runs(store)}
