"""When is one model's name another's? APIs answer an alias with the dated version that it stands for."""

import re

# What an id may have after its name: the day of its snapshot, as the providers write it.
DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{4})")
ALIAS = "-latest"


def is_version_of(model: str, name: str) -> bool:
    """Whether a model's id is this name, with or without the date of a snapshot."""
    rest = model.removeprefix(name)
    return model.startswith(name) and (not rest or DATED.fullmatch(rest) is not None)


def answers_for(answered: str, asked: str) -> bool:
    """Whether an answer of `answered` is one of the model asked for."""
    return is_version_of(answered, asked.removesuffix(ALIAS)) or answered == asked
