"""What each epoch of a playbook may spend of the false share q: a half, a quarter, an eighth, ...

An accepted change closes the e-process of its playbook. Trades after it start a new one, in epoch k, and are
charged q_k = q / 2^(k + 1), so the sum over all epochs that may ever come stays below q, whatever made them
begin. A playbook that is not changed stays in its epoch and keeps its level. Read when the family is
registered, once per report.
"""

MOST = 60


def share(epoch: int) -> float:
    """The part of q that epoch `epoch` (from 0) may spend; epochs beyond 60 spend what the 60th does.

    Halving stops there because the level is below anything that an e-value of a report can reach.
    """
    return 0.5 ** (min(max(epoch, 0), MOST) + 1)
