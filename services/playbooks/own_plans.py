"""What a plan is held to: the playbook that it follows, or, where its rules are its strategist's own, itself.

A plan with its own rules needs no playbook file. The envelope bounds it, geometry and its own rules judge it,
and its trades are remembered, clustered and tested under its id.
"""

from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from schemas.errors import ConfigError
from schemas.playbook import DirectionRules, OwnPlaybook, PlaybookDefinition
from schemas.policy import FrozenPolicy
from schemas.proposal import OWN, PolicyProposal
from services.playbooks.rendering import render_rules
from services.ports import PlaybookReader


def playbook_of(proposal: PolicyProposal, playbooks: PlaybookReader) -> PlaybookDefinition:
    """The playbook that a plan follows; of one with its own rules, what it says itself.

    Raises:
        ConfigError: it follows no active playbook, or its own rules cannot be held together.
    """
    name = proposal.playbook_id
    known = sorted(version.definition.id for version in playbooks.active())
    if name.startswith(OWN) and name not in known:
        return own_playbook(proposal)
    if proposal.risk_fraction is not None:
        raise ConfigError(
            f"risk_fraction {proposal.risk_fraction!r} of a plan by {name!r}: leave it out, or give the plan "
            f"rules of its own and the playbook_id '{OWN}NAME'"
        )
    if name not in known:
        raise ConfigError(
            f"playbook_id {name!r} is no active playbook ({', '.join(known)}): name one, or '{OWN}{name}' "
            "for a plan with its own rules"
        )
    return playbooks.get(name).definition


def playbook_of_policy(policy: FrozenPolicy, playbooks: PlaybookReader) -> PlaybookDefinition | None:
    """As `playbook_of`; None where the playbook has no active version any more."""
    if not policy.playbook_hash:
        return own_playbook(policy.proposal)
    active = {version.definition.id: version.definition for version in playbooks.active()}
    return active.get(policy.playbook_id)


@lru_cache(maxsize=256)
def own_playbook(proposal: PolicyProposal) -> OwnPlaybook:
    """The rules, terms and bounds of a plan as a playbook of one direction, allowed in every regime.

    Raises:
        ConfigError: the rules have no way out, name a parameter, or do not fit the terms; one line.
    """
    given: dict[str, Any] = {
        "id": proposal.playbook_id,
        "rules": {
            proposal.direction: {role: getattr(proposal, role) for role in DirectionRules.model_fields}
        },
        "horizon_bars": max(2, proposal.horizon_bars),
        "activation_window_bars": proposal.activation_window_bars,
    }
    if proposal.risk_fraction is not None:
        given["risk_fraction"] = proposal.risk_fraction
    try:
        made = OwnPlaybook(**given, **proposal.terms())
        render_rules(made, proposal.direction)
    except ValidationError as error:
        first = error.errors()[0]
        place, what = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"plan {proposal.playbook_id!r}, {place or 'rules'}: {what}") from error
    except ConfigError as error:
        raise ConfigError(f"plan {proposal.playbook_id!r}: {error}") from error
    return made
