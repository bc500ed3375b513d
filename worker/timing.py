"""Wall seconds of one run, by part; telemetry only."""

from dataclasses import dataclass


@dataclass
class Timing:
    """Wall seconds by part. `engine_s` excludes `compile_s`; `total_s` includes everything."""

    compile_s: float = 0.0
    engine_s: float = 0.0
    policy_s: float = 0.0
    slow_s: float = 0.0
    total_s: float = 0.0
