"""Decomposition methods (section 6 of the paper): train a few nodes of the tree at a time."""

from __future__ import annotations

from softsplit.decomposition.evaluation import EvaluationSet
from softsplit.decomposition.nodes import NodeDecomposition
from softsplit.decomposition.stopping import (
    MacroIterations,
    ProcessorTime,
    Residual,
    ValidationAccuracy,
)
from softsplit.decomposition.trace import DecompositionTrace, TracedSolution, TraceRow
from softsplit.decomposition.working_sets import (
    Alternating,
    LargestViolation,
    SingleBranches,
    Subtrees,
)

__all__ = [
    "Alternating",
    "DecompositionTrace",
    "EvaluationSet",
    "LargestViolation",
    "MacroIterations",
    "NodeDecomposition",
    "ProcessorTime",
    "Residual",
    "SingleBranches",
    "Subtrees",
    "TraceRow",
    "TracedSolution",
    "ValidationAccuracy",
]
