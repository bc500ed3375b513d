"""Which prompt is a template of? Its placeholders say so, because each question fills its own ones.

Two templates are compared only when both belong to the same question; `present` stands for the template of
that question that is in use.
"""

from pathlib import Path

from agents.planning import plan_reply
from agents.strategies import model_strategist
from prompts import PromptError, PromptTemplate, load_prompt, template_from_text
from schemas.errors import ConfigError
from services import policy_level_reflection_service
from services.text.given_files import read_text

PRESENT = "present"
STRATEGIST = model_strategist.PROMPT
CONSOLIDATION = policy_level_reflection_service.PROMPT
PLANNER = plan_reply.PROMPT
KINDS = (CONSOLIDATION, STRATEGIST, PLANNER)


def read_template(path: Path | None, name: str = CONSOLIDATION) -> PromptTemplate:
    """The template to ask with: the present one of this name, or that of a file.

    Raises:
        ConfigError: the file cannot be read, or is no template of this question.
    """
    present = load_prompt(name)
    if path is None:
        return present
    try:
        template = template_from_text(name, read_text(path, ConfigError))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--prompt {str(path)!r} cannot be read: {error}") from error
    except PromptError as error:
        raise ConfigError(f"--prompt {str(path)!r}: {error}") from error
    if template.placeholders != present.placeholders:
        wanted = ", ".join("{{" + name + "}}" for name in sorted(present.placeholders))
        raise ConfigError(f"--prompt {str(path)!r} must have exactly the placeholders {wanted}")
    return template


def read_pair(first: str, second: str) -> tuple[PromptTemplate, PromptTemplate]:
    """Two templates of the same question, each named after its prompt; a name is a file or `present`.

    Raises:
        ConfigError: a file cannot be read or is no template, or both names leave the question open.
    """
    read = [None if name == PRESENT else _read(name) for name in (first, second)]
    kinds = {template.name for template in read if template is not None}
    if len(kinds) != 1:
        found = "both are 'present'" if not kinds else f"{first!r} and {second!r} are of different prompts"
        raise ConfigError(f"{found}: give two templates of one prompt, {_either()}")
    present = load_prompt(kinds.pop())
    one, other = (present if template is None else template for template in read)
    return one, other


def _read(name: str) -> PromptTemplate:
    try:
        text = read_text(Path(name), ConfigError)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name!r} cannot be read: {error}") from error
    try:
        template = template_from_text(name, text)
    except PromptError as error:
        raise ConfigError(str(error)) from error
    for kind in KINDS:
        if template.placeholders == load_prompt(kind).placeholders:
            return template_from_text(kind, text)
    has = ", ".join(sorted(template.placeholders)) or "none"
    raise ConfigError(f"{name!r} has the placeholders {has}: give it exactly those of {_either()}")


def _either() -> str:
    """Every prompt with its placeholders."""
    names = {kind: sorted(load_prompt(kind).placeholders) for kind in KINDS}
    return " or ".join(
        f"{kind} ({', '.join('{{' + name + '}}' for name in found)})" for kind, found in names.items()
    )
