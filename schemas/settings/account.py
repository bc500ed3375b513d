"""The simulated account."""

from pydantic import Field

from schemas.contract import Contract


class AccountSettings(Contract):
    """The simulated account, in quote currency."""

    name: str = Field(default="paper", description="part of every order id")
    cash: float = Field(default=100_000.0, gt=0, le=1e15, description="starting cash, in quote currency")
