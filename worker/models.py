"""The language models of a run: none in the rules tiers, the configured ones in mode `full`.

The key comes from the environment only. Clients are opened before the first bar, because importing the
SDK takes seconds and would otherwise eat the first deadline.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from agents.language_models.anthropic import AnthropicModel
from schemas.config import Settings
from schemas.errors import ConfigError
from services.ports import LanguageModel
from trading_core.tick_guard import TickGuard

KEY_VARIABLE = "ANTHROPIC_API_KEY"
URL_VARIABLE = "ANTHROPIC_BASE_URL"


@dataclass(frozen=True)
class Models:
    """Model of the fast reflection and of the report's narrative; None where rules do it alone."""

    fast: LanguageModel | None = None
    slow: LanguageModel | None = None


def model_key(settings: Settings, environment: Mapping[str, str]) -> str | None:
    """The key of the configured models; None when the settings ask for none.

    Raises:
        ConfigError: mode `full` without a key.
    """
    if settings.reflection.mode != "full":
        return None
    key = environment.get(KEY_VARIABLE, "")
    if not key:
        raise ConfigError(f"reflection mode 'full' needs a key: set {KEY_VARIABLE}, or use 'deterministic'")
    return key


def configured_models(settings: Settings, guard: TickGuard, environment: Mapping[str, str]) -> Models:
    """The models that the settings ask for.

    Raises:
        ConfigError: mode `full` without a key.
    """
    key = model_key(settings, environment)
    if key is None:
        return Models()
    base_url = environment.get(URL_VARIABLE)
    fast = AnthropicModel(settings.llm.fast_model, api_key=key, guard=guard, base_url=base_url)
    slow = AnthropicModel(settings.llm.slow_model, api_key=key, guard=guard, base_url=base_url)
    fast.open()
    slow.open()
    return Models(fast, slow)
