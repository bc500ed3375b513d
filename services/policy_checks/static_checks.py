"""What no market can make right in a playbook: said when it is loaded, before a run trades nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from schemas.playbook import DirectionRules, PlaybookDefinition
from schemas.reflection import InvariantContext
from schemas.settings import Settings
from schemas.vocabulary import Direction
from services.playbooks.rendering import KIND_OF_ROLE, render_rules, rule_texts
from services.policy_checks.expectation import FARTHEST_TARGET_MFE, LONGEST_HORIZON_P90
from services.policy_checks.geometry import BEFORE_TARGET
from services.policy_checks.plan_levels import always_misplaced, can_arm, symbolic_reach
from trading_core.rules.bounds import possible_of

HORIZON_BOUND: int = InvariantContext.model_fields["max_horizon_bars"].default


@dataclass(frozen=True)
class Mistake:
    """The field, the code of the finding that would meet every plan, and what to change."""

    playbook_id: str
    field: str
    code: str
    message: str

    @property
    def text(self) -> str:
        """In one line."""
        return f"playbook {self.playbook_id!r}, {self.field}: {self.message}"


def list_mistakes(definitions: Sequence[PlaybookDefinition], settings: Settings) -> tuple[Mistake, ...]:
    """Mistakes of playbooks under these settings, in the order of the playbooks.

    Args:
        definitions: as they are loaded, with the values that their parameters have now.
        settings: of the run: what its reflection and its envelope ask of every plan.
    """
    found = []
    for playbook in definitions:
        parts = [*_of_numbers(playbook, settings)]
        for direction in playbook.rules:
            rules = render_rules(playbook, direction)
            parts += _of_conditions(rules, direction)
            parts += _of_levels(rules, direction, playbook, settings.reflection.min_reward_to_risk)
        found += [Mistake(playbook.id, *part) for part in parts]
    return tuple(found)


Part = tuple[str, str, str]


def _of_numbers(playbook: PlaybookDefinition, settings: Settings) -> Iterator[Part]:
    horizon, longest = playbook.horizon_bars, LONGEST_HORIZON_P90 * playbook.expectation.hold_p90_bars
    if horizon > HORIZON_BOUND:
        yield (
            "horizon_bars",
            "horizon_over_bound",
            f"{horizon} bars are over the bound of {HORIZON_BOUND}, so every plan is blocked: shorten it",
        )
    elif horizon > longest and playbook.expectation.is_written:
        yield (
            "horizon_bars",
            "horizon_too_long",
            f"{horizon} bars are more than {LONGEST_HORIZON_P90:g} times expectation.hold_p90_bars "
            f"({playbook.expectation.hold_p90_bars:g}), so plans are sent back: shorten it, or expect more",
        )
    cap, limit = settings.envelope.risk_cap, settings.envelope.risk_fraction
    if playbook.risk_fraction > cap:
        yield (
            "risk_fraction",
            "risk_fraction_over_cap",
            f"{playbook.risk_fraction:g} of equity is above the cap of {cap:g}, so every order is clamped to "
            f"envelope.risk_fraction ({limit:g}), which is an event: lower it",
        )


def _of_conditions(rules: DirectionRules, direction: Direction) -> Iterator[Part]:
    for role, text in rule_texts(rules).items():
        if KIND_OF_ROLE[role] != "boolean":
            continue
        can_be, field = possible_of(text), f"rules.{direction}.{role}"
        if not can_be.true:
            yield field, "unreachable", f"{text!r} can never be true: loosen it"
        elif not can_be.false:
            yield field, "tautology", f"{text!r} is true whatever the market does: narrow it"
    if rules.invalidation is None:
        return
    for role in ("setup", "activation"):
        text = getattr(rules, role)
        if text is None or not possible_of(text).true or not possible_of(rules.invalidation).false:
            continue
        if not can_arm(text, rules.invalidation):
            words = f"is true whenever the {role} is, so no trade can be opened: change one"
            message = f"{rules.invalidation!r} {words}"
            yield f"rules.{direction}.invalidation", "invalidation_already_true", message
            return


def _find_wrong_levels(rules: DirectionRules, direction: Direction) -> Iterator[tuple[str, str, str]]:
    """(code, role, words) of a stop or target that lies wrong at every close that orders at the market."""
    role, when = ("setup", rules.setup) if rules.activation is None else ("activation", rules.activation)
    if rules.entry is not None or not possible_of(when).true:
        return
    long = direction == "long"
    for level, below in (("stop", long), ("target", not long)):
        side, where = ("<", "below") if below else (">", "above")
        text = getattr(rules, level)
        if not possible_of(f"({when}) and ({text}) {side} close").true:
            yield (
                f"{level}_on_wrong_side",
                level,
                f"{text!r} never lies {where} the close where the {role} is true",
            )


def _of_levels(
    rules: DirectionRules, direction: Direction, playbook: PlaybookDefinition, least: float
) -> Iterator[Part]:
    """Sides, and what the levels say of each other where they lie in proportion."""
    wrong = list(always_misplaced(rules, direction, playbook.entry_kind)) or list(
        _find_wrong_levels(rules, direction)
    )
    for code, role, words in wrong:
        yield f"rules.{direction}.{role}", code, f"{words}: move it"
    if wrong:
        return
    reach = symbolic_reach(rules)
    if reach is None:
        return
    last = {
        "scale_out_r": playbook.scale_outs[-1][0] if playbook.scale_outs else None,
        "break_even_r": playbook.break_even_r,
    }
    for name, advance in last.items():
        if advance is not None and advance >= reach:
            yield name, BEFORE_TARGET[name], f"{advance:g} R lie beyond the target at {reach:.2f} R: lower it"
    field, farthest = f"rules.{direction}.target", FARTHEST_TARGET_MFE * playbook.expectation.mfe_p50_r
    if reach < least:
        message = (
            f"it is {reach:.2f} times the distance of the stop, at least {least:g} is asked for: move one"
        )
        yield field, "reward_to_risk_too_low", message
    elif reach > farthest and playbook.expectation.is_written:
        message = (
            f"it is {reach:.2f} times the distance of the stop, {FARTHEST_TARGET_MFE:g} times "
            f"expectation.mfe_p50_r are {farthest:g}: move it nearer, or expect more"
        )
        yield field, "target_beyond_mfe", message
