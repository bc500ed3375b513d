"""The parts of the policy loop: what opens an evaluation, what it sees, how it freezes and what is recorded.

`services.policy_loop_service` composes them; the checks that a plan has to survive are in `policy_checks`.
"""
