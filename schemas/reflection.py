"""Contracts of both reflections and of tick validation, by one name.

Each lives in the module of its loop; contracts, engine and services take it from there.
"""

from schemas.fast_reflection import (
    BUCKETS,
    Finding,
    InvariantContext,
    MemoryCase,
    MemorySummary,
    PolicyAmendmentRequest,
    PolicyLevelReflectionRequest,
    PolicyLevelReflectionResult,
    Remedy,
)
from schemas.invocation import ReflectionInvocationMeta
from schemas.no_learn import NoLearnZone
from schemas.settings.bounds import LARGEST_QUOTA
from schemas.slow_reflection import (
    ClusterFinding,
    DecayLevel,
    DeferredItem,
    ExpectationCheck,
    FireCounts,
    FirePair,
    FireQuality,
    FireWindow,
    GridTrial,
    HighLevelReflectionReport,
    HighLevelReflectionRequest,
    JudgeActionSeen,
    OpenEntry,
    Recommendation,
    RegimeShift,
    UntradedSignal,
)
from schemas.tick_validation import TickValidationEvent, TickValidationResult

__all__ = [
    "BUCKETS",
    "LARGEST_QUOTA",
    "ClusterFinding",
    "DecayLevel",
    "DeferredItem",
    "ExpectationCheck",
    "Finding",
    "FireCounts",
    "FirePair",
    "FireQuality",
    "FireWindow",
    "GridTrial",
    "HighLevelReflectionReport",
    "HighLevelReflectionRequest",
    "InvariantContext",
    "JudgeActionSeen",
    "OpenEntry",
    "MemoryCase",
    "MemorySummary",
    "NoLearnZone",
    "PolicyAmendmentRequest",
    "PolicyLevelReflectionRequest",
    "PolicyLevelReflectionResult",
    "Recommendation",
    "ReflectionInvocationMeta",
    "RegimeShift",
    "Remedy",
    "TickValidationEvent",
    "TickValidationResult",
    "UntradedSignal",
]
