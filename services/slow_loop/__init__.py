"""The parts of the slow loop: when it is due, what it gathers, what a judge may change, and the ledgers.

`services.slow_loop_service` composes them; what a report says is made in `high_level`.
"""
