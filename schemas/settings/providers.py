"""The providers of language models, one row each, and how a setting names a model: `provider/name[@address]`.

A row says what is sent first; what a server refuses is learned from its answer. A provider without a row is
asked as any server of chat completions is, at the address that the settings give.
"""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator

from schemas.errors import nearest

Effort = Literal["none", "low", "medium", "high"]
BOUNDS = ("max_tokens", "max_completion_tokens")  # what servers of chat completions call a reply's bound
REASONING: Mapping[str, str] = MappingProxyType({word: word for word in ("none", "low", "medium", "high")})
NO_MODEL = "none"
OWN_PROVIDER = "own"  # an object that a script hands over; no file can name one
EXAMPLE = "anthropic/claude-haiku-5-5 or ollama/qwen3:8b"
HOST = re.compile(r"https?://(?:[^@/?#]*@)?(?:\[([^\]]*)\]|([^:/?#]*))", re.IGNORECASE)
ADDRESS = re.compile(r"@(?=https?://)")


class Provider(NamedTuple):
    """How the models of one provider are asked.

    Attributes:
        address: of its API; None: it has to be given.
        key: variable of the environment that holds the key.
        wire: the API that it speaks: the module of this name under `agents/language_models`.
        bound: what it calls the bound of a reply.
        efforts: what it calls each effort; one that is missing is not sent.
        refuses: further parameters that it takes from nobody.
        keyless: whether it may be asked without a key.
        free: whether it runs on a machine of one's own, unless its address is public: no token is paid.
        cuts: whether it shortens a question that is longer than its context, and says nothing.
    """

    address: str | None
    key: str
    wire: str = "openai"
    bound: str = BOUNDS[0]
    efforts: Mapping[str, str] = REASONING
    refuses: frozenset[str] = frozenset()
    keyless: bool = False
    free: bool = False
    cuts: bool = False


ON_OR_OFF = MappingProxyType({word: word for word in REASONING if word != "none"})
SILENT: Mapping[str, str] = MappingProxyType({})
PROVIDERS: Mapping[str, Provider] = MappingProxyType({
    "anthropic": Provider(
        "https://api.anthropic.com", "ANTHROPIC_API_KEY", "anthropic", refuses=frozenset({"temperature"})
    ),
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", bound=BOUNDS[1]),
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY", efforts=SILENT),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", efforts=SILENT),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY", bound=BOUNDS[1]),
    "ollama": Provider("http://127.0.0.1:11434/v1", "OLLAMA_API_KEY", keyless=True, free=True, cuts=True),
    "vllm": Provider(
        "http://127.0.0.1:8000/v1", "VLLM_API_KEY", efforts=ON_OR_OFF, keyless=True, free=True
    ),
})  # fmt: skip


class ModelName(NamedTuple):
    """A model as a setting names it."""

    provider: str
    name: str
    address: str | None = None

    @property
    def row(self) -> Provider:
        """How it is asked."""
        found = PROVIDERS.get(self.provider)
        return found or Provider(None, f"{self._variable}_API_KEY", keyless=True)

    @property
    def address_variable(self) -> str:
        """The variable of the environment that may hold the address of its provider."""
        return f"{self._variable}_BASE_URL"

    @property
    def _variable(self) -> str:
        return re.sub(r"\W", "_", self.provider.upper(), flags=re.ASCII)

    def address_missing(self) -> str:
        """What to say where its provider has no row and no address is given."""
        return (
            f"model '{self.provider}/{self.name}': {self.provider!r} is none of the providers that "
            f"thinktwice knows ({', '.join(PROVIDERS)}): give the address of its chat completions, "
            f"llm.base_url = 'http://HOST/v1' or '{self.provider}/{self.name}@http://HOST/v1'."
            f"{nearest(self.provider, PROVIDERS)}"
        )


def model_name(word: str) -> ModelName:
    """The model that `provider/name[@address]` names.

    Raises:
        ValueError: it names no provider, or no model.
    """
    model, *address = ADDRESS.split(word, maxsplit=1)
    provider, _, name = model.partition("/")
    if not provider or not name or model.strip() != model:
        raise ValueError(f"{word!r} names no provider and model: write provider/name, like {EXAMPLE}")
    return ModelName(provider, name, address[0] if address else None)


def is_private(address: str) -> bool:
    """Whether an address is of this machine or of a private network: a name without a dot is of one."""
    found = HOST.match(address)
    host = (found[1] or found[2] or "").lower() if found else ""
    try:
        return ip_address(host).is_private
    except ValueError:
        return host.endswith(".localhost") or (host[:1].isalpha() and "." not in host)


def without_address(word: str) -> str:
    """The word without its address: where a model is asked decides nothing."""
    return ADDRESS.split(word, maxsplit=1)[0]


def named_word(word: str) -> str:
    """The word, if it names a model; raises ValueError where it names none."""
    model_name(word)
    return word


ModelWord = Annotated[str, AfterValidator(named_word)]
