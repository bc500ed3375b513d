"""Parts of a script's own in the library: critics, models, entry points; what fails is contained and told."""

import asyncio
import json
import threading
from typing import Any

import pytest

import thinktwice as tt
from schemas.settings import JudgeSettings
from schemas.settings.llm import LlmSettings
from schemas.settings.planner import PlannerSettings
from schemas.vocabulary import CheckName, ReflectionStatus, Severity
from thinktwice.parts import own_parts

YEAR: dict[str, Any] = {"start": "2003-01-01", "end": "2003-12-31"}
WEEKS: dict[str, Any] = {"start": "2003-01-01", "end": "2003-06-30", "symbols": ("AAPL", "IBM")}


def never(request):
    return tt.finding("never_today", f"{request.proposal.direction} is not for today")


def test_own_critic_that_blocks_everything_leaves_no_trade_and_says_so():
    assert tt.backtest(**YEAR).summary["trades"] > 0
    result = tt.backtest(**YEAR, critics=never)
    assert result.summary["trades"] == 0
    first = result.document["why_no_trade"][0]
    assert first["reason"] == "never_today"
    assert first["remedy"] == "a critic of your own found it (once: long is not for today)"
    assert "\n  never_today " in repr(result)
    own = result.findings.query("check == 'own'")
    assert set(own["status"]) == {"block"}
    assert result.verify()


def test_own_critic_sees_the_request_and_never_lowers_what_the_rules_say():
    ours = tt.backtest(**YEAR)

    def mild(request):
        assert request.snapshot.symbol in ours.document["data"]["symbols"]
        return [
            tt.finding("seen", "noted", "info"),
            tt.Finding(check=CheckName.INVARIANT, code="x", severity=Severity.INFO, message="x"),
        ]

    result = tt.backtest(**YEAR, critics=[mild])
    assert list(result.trades["entry_label"]) == list(ours.trades["entry_label"])
    counts = [
        entry.findings.query("check not in ('own',)")["status"].value_counts().to_dict()
        for entry in (ours, result)
    ]
    assert counts[0] == counts[1]
    assert counts[0][ReflectionStatus.PASS] > 0
    assert set(result.findings.query("code == 'x'")["check"]) == {"own"}


async def later(request):
    return never(request)


class Later:
    async def __call__(self, request):
        return never(request)


@pytest.mark.parametrize(
    ("critic", "quoted"),
    [
        (lambda request: 1 / 0, "ZeroDivisionError"),
        (lambda request: "no", r"critic .* gave 'n': it returns findings, or None"),
        (lambda request: True, r"critic .* gave True: it returns findings, or None"),
    ],
)
def test_own_critic_that_fails_lets_nothing_pass_and_is_told(critic, quoted):
    with pytest.warns(UserWarning, match=f"contained in this run, first .*{quoted}"):
        result = tt.backtest(**WEEKS, critics=critic)
    assert result.summary["trades"] == 0


def failing_part(method, call, *, at_once=False):
    """A function of ours that answers by one method of its own, and hands every other call on."""

    class Failing:
        def __init__(self, ours):
            self.ours = ours

        def __getattr__(self, name):
            return getattr(self.ours, name)

    async def later(self, *given, **named):
        return call()

    setattr(Failing, method, (lambda self, *given, **named: call()) if at_once else later)
    return Failing


@pytest.mark.parametrize(
    ("kind", "method", "call", "at_once", "quoted"),
    [
        ("strategist", "answer", lambda: None, False, "returned None: it returns a StrategistAnswer"),
        ("strategist", "answer", lambda: {"a": 1}["b"], False, "raised KeyError: 'b'"),
        ("strategist", "answer", lambda: 5, True, "returned 5 and nothing to await: write it with async def"),
        ("judge", "validate_boundary", lambda: "no", False, "returned 'no': it returns a BoundaryVerdict"),
        ("judge", "validate_boundary", lambda: 1 / 0, True, "raised ZeroDivisionError: division by zero"),
        ("judge", "validate_amendment", lambda: None, True, "returned None: it returns a BoundaryVerdict"),
        ("judge", "validate_amendment", lambda: None, False, "is async, and answers at once: write it with"),
    ],
)
def test_own_part_that_fails_is_told_by_its_name_and_method(kind, method, call, at_once, quoted):
    part: Any = failing_part(method, call, at_once=at_once)
    with pytest.warns(UserWarning, match=rf"contained in this run, first .*{kind}\.{method} {quoted}"):
        tt.backtest(**YEAR, **{kind: part})


def test_own_judge_that_answers_a_report_with_nothing_is_told_by_its_method():
    judge: Any = failing_part("replan", lambda: None)(None)
    judge.validate_boundary = judge.validate_amendment = print
    with pytest.raises(TypeError, match="judge.replan returned None: it returns a ReplanVerdict"):
        asyncio.run(own_parts(None, judge, ()).judge(judge).replan(judge, (), 0))


def test_own_critic_that_raises_is_told_by_its_name():
    def undecided(request):
        yield never(request)
        raise ValueError("not sure")

    with pytest.warns(UserWarning, match="critic <function .*undecided at .* raised ValueError: not sure"):
        tt.backtest(**WEEKS, critics=undecided)


class OfOurs:
    """As a strategist or judge may be, which is given ours."""

    def __init__(self, ours):
        self.ours = ours


def test_critics_that_nobody_would_ask_are_refused():
    with pytest.raises(tt.ConfigError, match="reflection is off: leave one of them out"):
        tt.backtest(**WEEKS, critics=never, reflection="off")
    with pytest.raises(tt.ConfigError, match="critic 3 cannot be called"):
        tt.backtest(**WEEKS, critics=[3])  # type: ignore[list-item]  # what a script may hand over
    wrong: dict[str, dict[str, Any]] = {"critic": {"critics": OfOurs}, "model": {"model": OfOurs}}
    for kind, given in wrong.items():
        with pytest.raises(tt.ConfigError, match=rf"{kind} <class .*OfOurs'> cannot be made \(.*'ours'\)"):
            tt.backtest(**WEEKS, **given)
    with pytest.raises(tt.ConfigError, match="critic <function .* is async, and a critic answers at once"):
        tt.backtest(**WEEKS, critics=later)  # type: ignore[arg-type]
    with pytest.raises(tt.ConfigError, match="is async, and a critic answers at once: write it with def"):
        tt.backtest(**WEEKS, critics=[Later])  # type: ignore[list-item]
    with pytest.raises(tt.ConfigError, match=r"severity 'blok' is none of .* Did you mean 'block"):
        tt.finding("code", "words", "blok")
    with pytest.raises(tt.ConfigError, match="code 'No Way': write lower-case"):
        tt.finding("No Way", "words")


class Counting:
    """Answers the same to every prompt, and counts them."""

    name = "mine"

    def __init__(self, reply):
        self.reply, self.prompts = reply, []

    def complete(self, *, system, prompt, max_tokens, deadline_ms):
        self.prompts.append(prompt)
        return self.reply


@pytest.mark.usefixtures("over_the_cap")
@pytest.mark.filterwarnings("ignore:playbook .* is above the cap:UserWarning")
def test_own_model_is_asked_in_every_part_and_its_replies_are_played_back():
    model = Counting(
        tt.ModelReply("I would rather not.", "mine-1", input_tokens=7, output_tokens=3, latency_ms=1.0)
    )
    with pytest.warns(UserWarning, match="replies could not be read; rules decided there"):
        result = tt.backtest(**YEAR, model=model, reflection="full", strategist="model", judge="model")
    request = len(model.prompts)
    payload = result.document["model"]
    assert payload["calls"] == request > 0
    assert payload["tokens"]["input"] == 7 * request
    prompts = {event.payload["call"]["prompt"] for event in result.index.of_kind("model_call")}
    assert {"policy_level_reflection", "strategist"} <= prompts
    assert {event.payload["call"]["provider"] for event in result.index.of_kind("model_call")} == {"own"}
    assert result.verify()
    assert len(model.prompts) == request


@pytest.mark.usefixtures("over_the_cap")
@pytest.mark.filterwarnings("ignore:playbook .* is above the cap:UserWarning")
def test_reader_of_the_callers_own_whose_verdicts_rest_on_nothing_is_warned_of_and_shown():
    void = {"verdict": "revise", "findings": ["none_such"], "comment": None, "deferred_needs": []}
    with pytest.warns(UserWarning, match="the second reader gave a usable answer to 0 of .* decided alone"):
        result = tt.backtest(**YEAR, model=Counting(json.dumps(void)), reflection="full")
    text = "the second reader gave a usable answer to 0 of "
    assert repr(result).startswith(text)
    assert text in result._repr_html_()


def test_own_model_that_plans_the_evidence_of_the_judge_is_asked_in_words():
    plan = '{"reasoning": "Its trades.", "tools": [], "confidence": 0.1, "clarification": "Which trades?"}'
    model = Counting(tt.ModelReply(plan, "mine-1", input_tokens=7, output_tokens=3, latency_ms=1.0))
    asking = tt.Settings(
        llm=LlmSettings(model="openai/gpt-6"),
        judge=JudgeSettings(replan="model"),
        planner=PlannerSettings(judge="model"),
    )
    with pytest.warns(UserWarning, match="replies could not be read; rules decided there"):
        result = tt.backtest(start="2000-03-01", end="2003-12-31", settings=asking, model=model)
    calls = [event.payload["call"] for event in result.index.of_kind("model_call")]
    assert "evidence_planner" in {call["prompt"] for call in calls}
    assert any(
        '"client": "thinktwice"' in prompt or '"client":"thinktwice"' in prompt for prompt in model.prompts
    )
    assert result.verify()


def test_own_model_that_raises_answers_nothing_or_hangs_is_contained_and_told():
    class Raises:
        async def complete(self, **request):
            raise ValueError("not today")

    class Silent:
        def complete(self, **request):
            return None

    released = threading.Event()

    class Hangs:
        def complete(self, **request):
            released.wait()

    ours = tt.backtest(**WEEKS)
    for model, reply, deadline_ms in (
        (Raises(), "'Raises' raised ValueError: not today", 20_000.0),
        (Silent(), "'Silent' gave 'NoneType': it returns text, or a ModelReply", 20_000.0),
        (Hangs(), "given up before it answered", 100.0),
    ):
        with pytest.warns(UserWarning, match=f"calls of a model failed, first .*{reply}"):
            result = tt.backtest(
                **WEEKS,
                strategist="model",
                model=model,
                llm__strategist_deadline_ms=deadline_ms,
                llm__attempts=1,
            )
        assert result.summary["trades"] == ours.summary["trades"]
        assert result.verify()
    released.set()


def test_own_model_that_nobody_would_ask_or_that_answers_no_prompts_is_refused():
    with pytest.raises(tt.ConfigError, match='nothing asks one: give reflection="full"'):
        tt.backtest(**WEEKS, model=Counting(""))
    with pytest.raises(tt.ConfigError, match=r"'openia' is none of the providers.*Did you mean 'openai'"):
        tt.backtest(**WEEKS, model="openia/gpt-6", reflection="full")
    with pytest.raises(tt.ConfigError, match="has no method 'complete'"):
        tt.backtest(**WEEKS, model=3, reflection="full")  # type: ignore[arg-type]  # what a script may hand over
    with pytest.raises(tt.ConfigError, match=r"is an object that a script hands over"):
        tt.backtest(**WEEKS, llm__model="own/mine", reflection="full")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package installed in the path, with a part of each group."""
    (tmp_path / "desk_parts.py").write_text(
        "import thinktwice as tt\n"
        "class Ours:\n"
        "    def __init__(self, ours): self.ours = ours\n"
        "    async def answer(self, snapshot, revision): return await self.ours.answer(snapshot, revision)\n"
        "def judge(ours): return ours\n"
        "def never(request): return tt.finding('never', 'not today')\n"
        "class Prose:\n"
        "    name = 'prose'\n"
        "    def complete(self, **asked): return 'no'\n"
    )
    info = tmp_path / "desk_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: desk-parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[thinktwice.strategists]\ndesk = desk_parts:Ours\n"
        "[thinktwice.judges]\ndesk = desk_parts:judge\n"
        "[thinktwice.critics]\nnever = desk_parts:never\nlost = desk_parts:lost\n"
        "[thinktwice.models]\nprose = desk_parts:Prose\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


def test_parts_of_a_package_are_named_by_their_entry_points(package):
    ours = tt.backtest(**WEEKS)
    assert tt.backtest(**WEEKS, strategist="desk", judge="desk").head_hash == ours.head_hash
    assert tt.backtest(**WEEKS, critics=["never"]).summary["trades"] == 0
    with pytest.warns(UserWarning, match="replies could not be read"):
        payload = tt.backtest(**WEEKS, strategist="model", model="prose").document["model"]
    assert payload["unusable"] > 0


@pytest.mark.parametrize(
    ("parts", "quoted"),
    [
        (
            {"strategist": "dsk"},
            r"strategist 'dsk': .*'thinktwice.strategists' \(there: desk\). Did you mean 'desk'",
        ),
        ({"judge": "other"}, r"judge 'other': no package offers it .*\(there: desk\)"),
        ({"critics": ["nevr"]}, r"critic 'nevr': .*\(there: lost, never\). Did you mean 'never'"),
        ({"critics": "lost"}, r"critic 'lost': 'desk_parts:lost' cannot be loaded: .*has no attribute"),
        ({"model": "pros", "reflection": "full"}, r"model 'pros': .* Did you mean 'prose'"),
    ],
)
def test_name_that_no_package_offers_is_told_with_the_nearest(package, parts, quoted):
    with pytest.raises(tt.ConfigError, match=quoted):
        tt.backtest(**WEEKS, **parts)
