"""Which prompt is a template of? Its placeholders say so, because each question fills its own ones."""

from pathlib import Path

from agents.strategies import model_strategist
from prompts import PromptError, PromptTemplate, load_prompt, template_from_text
from schemas.errors import ConfigError
from services import policy_level_reflection_service
from services.text.given_files import read_text

READER, STRATEGIST = policy_level_reflection_service.PROMPT, model_strategist.PROMPT
SEATS = {READER: "fast", STRATEGIST: "strategist"}  # of `Models`


def read_template(path: Path) -> PromptTemplate:
    """The template of a file, named after the prompt whose placeholders it has.

    Raises:
        ConfigError: the file cannot be read, or is no template of a prompt that is asked again.
    """
    try:
        text = read_text(path, ConfigError)
        found = template_from_text(str(path), text).placeholders
    except (OSError, UnicodeDecodeError, PromptError) as error:
        raise ConfigError(f"--prompt {str(path)!r} cannot be read: {error}") from error
    known = {name: load_prompt(name).placeholders for name in SEATS}
    for name, placeholders in known.items():
        if found == placeholders:
            return template_from_text(name, text)
    names = {name: ", ".join("{{" + each + "}}" for each in sorted(known[name])) for name in known}
    either = " or ".join(f"{name} ({words})" for name, words in names.items())
    raise ConfigError(f"--prompt {str(path)!r}: give it exactly the placeholders of {either}")
