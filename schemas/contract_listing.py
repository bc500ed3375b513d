"""Every contract by name, with what it says of itself and its JSON schema."""

import importlib
import inspect
import pkgutil
from typing import Any

import schemas
from schemas.contract import Contract
from schemas.errors import ConfigError, nearest

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def contracts() -> dict[str, type[Contract]]:
    """Contracts by name, ascending."""
    found: dict[str, type[Contract]] = {}
    for info in pkgutil.walk_packages(schemas.__path__, f"{schemas.__name__}."):
        module = importlib.import_module(info.name)
        for name, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, Contract) and kind is not Contract and kind.__module__ == module.__name__:
                found[name] = kind
    return dict(sorted(found.items()))


def contract_named(name: str) -> type[Contract]:
    """One contract.

    Raises:
        ConfigError: there is none of this name; names the nearest.
    """
    known = contracts()
    if name not in known:
        same = [contract for contract in known if contract.lower() == name.lower()]
        guess = nearest(same[0] if same else name, known)
        raise ConfigError(f"no contract {name!r}.{guess} `thinktwice schema` lists them all")
    return known[name]


def summary_of(contract: type[Contract]) -> str:
    """First sentence of what a contract says about itself."""
    return " ".join(inspect.cleandoc(contract.__doc__ or "").split("\n\n")[0].split())


def schema_of(contract: type[Contract]) -> dict[str, Any]:
    """JSON schema of what `contract` reads."""
    return {"$schema": DIALECT, **contract.model_json_schema()}
