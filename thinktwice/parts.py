"""Parts of the caller's own: strategist, judge, critics, model; objects, or names of entry points.

A package offers one in the groups `thinktwice.strategists`, `thinktwice.judges`, `thinktwice.critics` and
`thinktwice.models`; `MODULE:NAME` names one that can be imported. An object stands in the place of ours; a
function or class is given ours.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any, TypeVar, cast

from agents.language_models.own_model import Model, OwnModel
from schemas.errors import ConfigError, ThinktwiceError, nearest
from schemas.judge import BoundaryVerdict, ReplanVerdict
from schemas.reflection import Finding, Remedy
from schemas.settings import Settings
from schemas.settings.providers import OWN_PROVIDER
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import CheckName, Severity
from services.ports import Critic, Judge, Strategist
from thinktwice.boundary import trims_errors
from worker.models import Models, Overrides, one_model

Part = TypeVar("Part")
StrategistPart = str | Strategist | Callable[[Strategist], Strategist] | None
JudgePart = str | Judge | Callable[[Judge], Judge] | None
CriticParts = str | Critic | Iterable[str | Critic]
ModelPart = str | Model | None
OF_A_JUDGE = "validate_boundary", "validate_amendment", "replan"
ANSWERS: dict[str, type] = {
    "answer": StrategistAnswer,
    "validate_boundary": BoundaryVerdict,
    "validate_amendment": BoundaryVerdict,
    "replan": ReplanVerdict,
}
AT_ONCE = "validate_amendment"
OF_SETTINGS = "rules", "model"  # words that settings have for a strategist and a judge


@trims_errors
def finding(
    code: str,
    message: str,
    severity: Severity | str = Severity.BLOCKER,
    *,
    evidence: Sequence[str] = (),
    remedy: Remedy | None = None,
) -> Finding:
    """What a critic of your own found.

    Args:
        code: stable; lower-case letters, digits and underscores.
        message: for people.
        severity: `blocker` ends the plan, `major` sends it back, `minor` and `info` are noted.
        evidence: ids of what it rests on.
        remedy: what would satisfy it.

    Raises:
        ConfigError: a severity or a code that cannot be.
    """
    known = [severity.value for severity in Severity]
    if severity not in known:
        raise ConfigError(
            f"severity {severity!r} is none of {', '.join(known)}.{nearest(str(severity), known)}"
        )
    if (
        not code.isascii()
        or not code.replace("_", "a").isalnum()
        or not code[0].isalpha()
        or not code.islower()
    ):
        raise ConfigError(f"code {code!r}: write lower-case letters, digits and underscores, a letter first")
    return Finding(
        check=CheckName.OWN, code=code, severity=Severity(severity), message=message,
        evidence=tuple(evidence), remedy=remedy,
    )  # fmt: skip


def own_parts(strategist: StrategistPart, judge: JudgePart, critics: CriticParts) -> Overrides:
    """What stands around the parts of a session.

    Raises:
        ConfigError: one is no such part, or no package offers its name.
    """
    given = find_part("strategist", strategist), find_part("judge", judge)
    questions = tuple(_critic(find_part("critic", name)) for name in list_critics(critics))
    own = [
        (kind, part) for kind, part in zip(("strategist", "judge"), given, strict=True) if part is not None
    ]
    own += [("critic", critic) for critic in questions]
    return Overrides(
        strategist=_around("strategist", given[0], "answer"),
        judge=_around("judge", given[1], *OF_A_JUDGE),
        critics=questions,
        names=tuple(f"{kind} {getattr(part, '__name__', type(part).__name__)}" for kind, part in own),
    )


def list_critics(critics: CriticParts) -> tuple[Any, ...]:
    """One critic, or several."""
    alone = isinstance(critics, str) or callable(critics) or not isinstance(critics, Iterable)
    return (critics,) if alone else tuple(critics)  # type: ignore[arg-type]


def settings_of_parts(strategist: StrategistPart, judge: JudgePart) -> dict[str, str]:
    """The settings that `strategist` and `judge` stand for, where they are words of them."""
    given = {"policy_loop__strategist": strategist, "judge__replan": judge}
    return {name: word for name, word in given.items() if isinstance(word, str) and word in OF_SETTINGS}


def own_model(given: ModelPart) -> OwnModel | None:
    """The model of the caller's own as a run asks it; None for one that `provider/name` names.

    Raises:
        ConfigError: it answers no prompts, or no package offers its name.
    """
    if given is None or names_provider(given):
        return None
    model = _make("model", find_part("model", given))
    _demand(model, ["complete"], repr(model))
    return OwnModel(model, str(getattr(model, "name", type(model).__name__)))


def settings_of_model(given: ModelPart, model: OwnModel | None) -> dict[str, Any]:
    """The settings under which every part that asks a model asks this one."""
    if model is None:
        return {"llm__model": given} if names_provider(given) else {}
    return {"llm__model": f"{OWN_PROVIDER}/{model.name}", "llm__structured_output": False}


def names_provider(given: ModelPart) -> bool:
    """Whether a model is `provider/name`, which settings name."""
    return isinstance(given, str) and "/" in given


def asked_models(settings: Settings, model: OwnModel | None) -> tuple[Settings, Models | None]:
    """The settings of runs that ask the model, and the model in every place; it costs nothing unless priced.

    It answers in words, so its plans are JSON: tools are no argument of it.

    Raises:
        ConfigError: nothing in the settings asks a model.
    """
    if model is None:
        return settings, None
    if not settings.uses_models:
        ways = 'reflection="full", strategist="model" or judge="model"'
        raise ConfigError(f"model: nothing asks one: give {ways} as well")
    planner = settings.planner.model_copy(update={"native_tools": False})
    return settings.model_copy(update={"planner": planner}), one_model(settings, model)


def find_part(kind: str, given: Any) -> Any:
    """A part as it is, or the one of this name; None for a word of the settings.

    Raises:
        ConfigError: nothing of this name can be imported.
    """
    if not isinstance(given, str):
        return given
    if kind in ("strategist", "judge") and given in OF_SETTINGS:
        return None
    place = place_named(kind, given)
    try:
        return resolve_name(place)
    except (Exception, SystemExit) as error:  # a module of the caller's may raise anything
        raise ConfigError(f"{kind} {given!r}: {place!r} cannot be loaded: {error}") from error


def place_named(kind: str, given: str) -> str:
    """`MODULE:NAME` of a part by its name.

    Raises:
        ConfigError: no package offers it.
    """
    if ":" in given:
        return given
    group = f"thinktwice.{kind}s"
    offered = {entry.name: entry.value for entry in entry_points(group=group)}
    if given not in offered:
        known = ", ".join(sorted(offered)) or "none"
        raise ConfigError(
            f"{kind} {given!r}: no package offers it (nor is it 'MODULE:NAME') by the entry points {group!r} "
            f"(there: {known}).{nearest(given, offered)}"
        )
    return offered[given].partition("[")[0].strip()


def _make(kind: str, given: Any) -> Any:
    """A critic or model of a class, which is called without arguments; an object as it is."""
    if not isinstance(given, type):
        return given
    with _making(kind, given, "a class that takes no arguments"):
        return given()


@contextmanager
def _making(kind: str, given: Any, other: str) -> Iterator[None]:
    try:
        yield
    except ThinktwiceError:
        raise
    except Exception as error:  # a part of the caller's may raise anything
        raise ConfigError(
            f"{kind} {given!r} cannot be made ({type(error).__name__}: {error}): give an object, or {other}"
        ) from error


def _critic(given: Any) -> Critic:
    critic: Critic = _make("critic", given)
    if not callable(critic):
        raise ConfigError(f"critic {critic!r} cannot be called: give a function of the request")
    if any(_is_async(function) for function in (critic, type(critic).__call__)):
        raise ConfigError(f"critic {critic!r} is async, and a critic answers at once: write it with def")
    return critic


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _around(kind: str, given: Any, *methods: str) -> Callable[[Part], Part]:
    """How a part of the caller's stands around ours: as it is, made by a function of ours, or not at all."""
    if given is None:
        return lambda ours: ours
    if not isinstance(given, type) and any(hasattr(given, method) for method in methods):
        _demand(given, methods, repr(given))
        part: Any = _OwnPart(kind, given)
        return lambda ours: part

    def make_part(ours: Part) -> Part:
        with _making(kind, given, "let it take ours"):
            found: Part = given(ours)
        _demand(found, methods, f"{given!r} gave {found!r}, which")
        return found if found is ours else cast("Part", _OwnPart(kind, found))

    if not callable(given):
        raise ConfigError(f"{given!r} has no method {methods[0]!r} and is no function of ours either")
    _demand_place_for_ours(given)
    return make_part


class _OwnPart:
    """A part of the caller's own; what goes wrong in a method of it is told with its name."""

    def __init__(self, kind: str, part: Any) -> None:
        self._kind, self._part = kind, part

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)
        if name not in ANSWERS:
            return method
        where = f"{self._kind}.{name}"

        def at_once(*given: Any, **named: Any) -> Any:
            with _raising_with(where):
                answer = method(*given, **named)
            return _answer_of(where, name, answer)

        async def later(*given: Any, **named: Any) -> Any:
            with _raising_with(where):
                request = method(*given, **named)
            if not inspect.isawaitable(request):
                raise TypeError(f"{where} returned {request!r} and nothing to await: write it with async def")
            with _raising_with(where):
                answer = await request
            return _answer_of(where, name, answer)

        return at_once if name == AT_ONCE else later


@contextmanager
def _raising_with(where: str) -> Iterator[None]:
    """Name the method in what it raises; what is ours, such as a reply that was not recorded, goes on."""
    try:
        yield
    except ThinktwiceError:
        raise
    except Exception as error:
        raise RuntimeError(f"{where} raised {type(error).__name__}: {error}") from error


def _answer_of(where: str, name: str, answer: Any) -> Any:
    if not isinstance(answer, ANSWERS[name]):
        if inspect.iscoroutine(answer):
            answer.close()
            raise TypeError(f"{where} is async, and answers at once: write it with def")
        raise TypeError(f"{where} returned {answer!r}: it returns a {ANSWERS[name].__name__}")
    return answer


def _demand_place_for_ours(given: Callable[..., Any]) -> None:
    try:
        taken = inspect.signature(given)
    except (TypeError, ValueError):  # a builtin that does not tell what it takes
        return
    try:
        taken.bind(object())
    except TypeError as error:
        how = "give its __init__ one more, or hand over an object of it" if isinstance(given, type) else ""
        raise ConfigError(
            f"{given!r} is called with one argument, ours: {how or 'let it take exactly that one'}"
        ) from error


def _demand(part: object, methods: Sequence[str], text: str) -> None:
    missing = next((method for method in methods if not hasattr(part, method)), None)
    if missing is not None:
        raise ConfigError(f"{text} has no method {missing!r}: write it, or hand the call on to ours")
