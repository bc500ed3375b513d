"""Requests, reports and verdicts as stored text, and back: the same content hash on both sides."""

import json

from schemas.canonical import ns_to_datetime
from schemas.contract import Contract
from schemas.judge import ReplanVerdict
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest

MOMENTS = ("window_start", "window_end")


def stored_text(artefact: Contract) -> str:
    """Canonical JSON of the hashed part."""
    return artefact.canonical_text()


def read_request(text: str) -> HighLevelReflectionRequest:
    """The request whose `stored_text` this is."""
    return HighLevelReflectionRequest.model_validate(with_moments(json.loads(text)))


def read_report(text: str) -> HighLevelReflectionReport:
    """The report whose `stored_text` this is, without its latency."""
    return HighLevelReflectionReport.model_validate(with_moments(json.loads(text)))


def read_verdict(text: str) -> ReplanVerdict:
    """The verdict whose `stored_text` this is."""
    return ReplanVerdict.model_validate_json(text)


def with_moments(payload: dict[str, object]) -> dict[str, object]:
    """A payload of a request or report with its window as times instead of ns."""
    moments = {name: payload[name] for name in MOMENTS}
    return payload | {name: ns_to_datetime(at) for name, at in moments.items() if isinstance(at, int)}
