"""Can a playbook's own plan pass now? Asked before it is offered, so that no base of ours is sent back."""

from collections.abc import Callable
from dataclasses import dataclass

from schemas.proposal import PolicyProposal
from schemas.reflection import Finding, InvariantContext, PolicyLevelReflectionRequest
from schemas.settings import ReflectionSettings
from schemas.snapshot import PolicySnapshot
from schemas.vocabulary import Severity
from services.policy_checks.coherence import check_coherence
from services.policy_checks.expectation import check_expectation
from services.policy_checks.invariants import check_invariants
from services.policy_checks.plan_levels import is_true, read_levels
from services.policy_checks.reasons import with_reasons
from services.ports import PlaybookReader

REFUSING = (Severity.MAJOR, Severity.BLOCKER)


@dataclass(frozen=True)
class SnapshotCheck:
    """The deterministic checks of the fast reflection that need nothing but a snapshot.

    Attributes:
        settings: of the reflection.
        playbooks: active versions.
        invariants: the guardrails at a snapshot.
    """

    settings: ReflectionSettings
    playbooks: PlaybookReader
    invariants: Callable[[PolicySnapshot], InvariantContext]

    def findings(self, proposal: PolicyProposal, snapshot: PolicySnapshot) -> tuple[Finding, ...]:
        """What would send the plan back, or block it; none where the reflection is switched off.

        A plan without reasons has those of its rules, which hold by themselves.
        """
        if self.settings.mode == "off":
            return ()
        invariants = self.invariants(snapshot)
        if invariants.no_learn_zones and not proposal.because:
            proposal = with_reasons(proposal, snapshot)  # their words may name a zone
        request = PolicyLevelReflectionRequest.trust(
            snapshot=snapshot,
            proposal=proposal,
            playbook=self.playbooks.get(proposal.playbook_id).definition,
            state=snapshot.state,
            invariants=invariants,
        )
        found = check_invariants(request)
        if not any(finding.severity is Severity.BLOCKER for finding in found):
            levels = read_levels(request)
            found += check_coherence(request, levels) + check_expectation(request, levels, self.settings)
        return tuple(finding for finding in found if finding.severity in REFUSING)

    def is_over(self, proposal: PolicyProposal, snapshot: PolicySnapshot) -> bool:
        """Whether the invalidation is true at this close, so that the setup has to come back first."""
        text = proposal.invalidation
        return text is not None and self.settings.mode != "off" and bool(is_true(text, snapshot))
