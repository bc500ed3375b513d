"""What a finding leans to: where both of its means and its claim say the same; and the nearest claim."""

from collections.abc import Iterable, Sequence

from schemas.slow_reflection import ClusterFinding, SecondOpinion
from schemas.vocabulary import RecommendedAction
from services.high_level.gate import STRENGTH


def losing(finding: ClusterFinding) -> bool:
    """Whether a cluster leans to losing: both of its means, as they are printed, lie below the reference."""
    means = _means(finding)
    return finding.leaning == "losing" and bool(means) and max(means) < finding.reference_r


def gaining(finding: ClusterFinding) -> bool:
    """Whether a cluster leans to gaining, and both of its means lie above the reference and above nothing."""
    means = _means(finding)
    return finding.leaning == "gaining" and bool(means) and min(means) > max(finding.reference_r, 0.0)


def _means(finding: ClusterFinding) -> tuple[float, ...]:
    if finding.mean_r is None or finding.mean_raw_r is None:
        return ()
    return finding.mean_r, finding.mean_raw_r


def may(finding: ClusterFinding, action: RecommendedAction) -> bool:
    """Whether the gate lets this finding lead as far as `action`."""
    return STRENGTH[finding.strongest_action] >= STRENGTH[action]


def supported_loss(findings: Sequence[ClusterFinding], playbook_id: str | None) -> SecondOpinion | None:
    """The second opinion on a playbook that leans to losing, where it claims a loss."""
    for item in findings:
        if item.regime is None and item.playbook_id == playbook_id and losing(item):
            opinion = item.second_opinion
            return opinion if opinion is not None and opinion.claim == "losing" else None
    return None


def loses_once_pooled(finding: ClusterFinding, minimum: int) -> bool:
    """Whether the band of a cell's shrunken mean lies below the reference, on a minimum of trades."""
    cell = finding.regime is not None and finding.timeframe is None
    upper = finding.shrunken_upper
    return cell and finding.n >= minimum and upper is not None and upper < finding.reference_r


def nearest_claim(clusters: Iterable[tuple[str, float | None, str]]) -> str:
    """The cluster that needs the least time, from (name, years, words); ties by name; or nothing."""
    near = [(needed, name, words) for name, needed, words in clusters if needed]
    return "{1} {2}".format(*min(near)) if near else ""
