"""Who decides on structural changes, until when, and what happens where nobody does."""

from typing import Literal

from pydantic import Field

from schemas.contract import Contract


class PlansSettings(Contract):
    """Change plans: what waits for a person, how long, and what acts without one."""

    enabled: bool = Field(
        default=True, description="whether structural changes are plans at all; off: they act by themselves"
    )
    approval: Literal["", "ask", "auto"] = Field(
        default="",
        description="who approves plans: `ask` a person, or `auto`; empty: a person on a live feed, nobody "
        "in a backtest or over recorded bars",
    )
    unattended: Literal["decline", "reduce_only"] = Field(
        default="decline",
        description="what becomes of a plan that nobody has decided when it expires: it is declined, or run "
        "if each of its steps lowers exposure",
    )
    lowering: Literal["act", "ask"] = Field(
        default="act", description="whether what only lowers exposure acts at once, or is a plan too"
    )
    auto_detect: bool = Field(
        default=True, description="whether a text is searched for signs that it asks for high stakes"
    )
    threshold: float = Field(
        default=0.6, ge=0, le=1, description="confidence from which a text takes two phases"
    )
    live_threshold: float = Field(default=0.4, ge=0, le=1, description="the same where a run trades live")
    analysis_tokens: int = Field(
        default=4_096, ge=16, le=32_000, description="tokens of a model that reads a text into actions"
    )
    execution_tokens: int = Field(
        default=8_192, ge=16, le=32_000, description="characters of a plan in tokens of four, at most"
    )
    allow_edit: bool = Field(default=True, description="whether a plan may be edited before it is approved")
    expires_s: float = Field(
        default=86_400.0,
        gt=0,
        le=31_536_000,
        description="seconds that a plan waits at least, in bar time on a run that trades",
    )
    expires_bars: int = Field(default=3, ge=1, le=1_000, description="bars that a plan waits at least")
    max_move_atr: float = Field(
        default=1.0,
        gt=0,
        le=100,
        description="a close further from that of the basis, in mean true ranges, makes a plan stale",
    )
