"""An exchange of ccxt by its name: opened without keys, pointed at a gateway if one is set, kept quiet.

Only the few methods that `ccxt_exchange` calls are used; nothing here or there signs, orders or withdraws.
"""

import importlib
import logging
from typing import Any
from urllib.parse import urlsplit

from schemas.errors import ConfigError, nearest
from schemas.settings.live import ExchangeSettings

INSTALL = "pip install 'thinktwice[live]'"
_SECURE_CLOSE_MS = 250  # ccxt's own pause, so that TLS connections end in order


def open_driver(name: str, settings: ExchangeSettings) -> Any:
    """A ccxt exchange.

    Raises:
        ConfigError: ccxt is not installed, or knows no such exchange.
    """
    rest = _library()
    if name not in rest.exchanges:
        raise ConfigError(
            f"exchange {name!r} is not one of the {len(rest.exchanges)} that ccxt {rest.__version__} knows."
            f"{nearest(name, rest.exchanges)}"
        )
    driver = getattr(rest, name)(_configuration(settings))
    _silence(driver)
    _expect_json(driver, rest.BadResponse)
    if settings.rest_url is not None:
        _redirect(driver.urls, settings.rest_url)
    return driver


def _library() -> Any:
    try:
        return importlib.import_module("ccxt.async_support")
    except ModuleNotFoundError as error:
        raise ConfigError(f"an exchange needs ccxt, which is not installed: run {INSTALL}") from error


def _configuration(settings: ExchangeSettings) -> dict[str, Any]:
    plain = settings.rest_url is not None and settings.rest_url.startswith("http://")
    found: dict[str, Any] = {
        "enableRateLimit": True,
        "timeout": settings.request_timeout_s * 1_000,
        "timeout_on_exit": 0 if plain else _SECURE_CLOSE_MS,
        "verbose": False,
        "options": {},
    }
    if settings.markets:
        found["options"]["fetchMarkets"] = {"types": list(settings.markets)}
    if settings.request_interval_ms is not None:
        found["rateLimit"] = max(settings.request_interval_ms, 0.001)
    return found


def _silence(driver: Any) -> None:
    """Ccxt prints whole answers at DEBUG, and complains of objects that were not closed."""
    logging.getLogger("ccxt").setLevel(logging.ERROR)
    driver.logger = logging.getLogger("ccxt")


def _expect_json(driver: Any, malformed: type[Exception]) -> None:
    """An answer of success that is not JSON is malformed; ccxt would read it as an empty list of bars."""
    note, parse = driver.on_rest_response, driver.parse_json
    succeeded = False

    def on_rest_response(status: int, *rest: Any) -> Any:
        nonlocal succeeded
        succeeded = 200 <= status < 300
        return note(status, *rest)

    def parse_json(text: str) -> Any:
        value = parse(text)
        if value is None and succeeded:
            raise malformed("an answer that is not JSON")
        return value

    driver.on_rest_response, driver.parse_json = on_rest_response, parse_json


def _redirect(urls: Any, gateway: str) -> None:
    """Put the gateway before the path of every address, nested as ccxt has them; changed in place."""
    for key, value in urls.items():
        if isinstance(value, dict):
            _redirect(value, gateway)
        elif isinstance(value, str) and value.split("://")[0] in ("http", "https"):
            urls[key] = gateway + urlsplit(value).path
