"""Decomposition methods (section 6 of the paper): train a few nodes of the tree at a time.

``NodeDecomposition`` is the solver. An own working-set rule is an object with ``blocks(view)``, an
own stopping rule one with ``reached(history)``: ``WorkingSets`` and ``StoppingRule`` are their
protocols, ``View`` and ``History`` what they are handed.
"""

from __future__ import annotations

from softsplit.decomposition.evaluation import EvaluationSet
from softsplit.decomposition.nodes import NodeDecomposition
from softsplit.decomposition.stopping import (
    Chooser,
    History,
    MacroIterations,
    ProcessorTime,
    Residual,
    StoppingRule,
    ValidationAccuracy,
)
from softsplit.decomposition.trace import DecompositionTrace, TracedSolution, TraceRow
from softsplit.decomposition.working_sets import (
    Alternating,
    LargestViolation,
    SingleBranches,
    Subtrees,
    View,
    WorkingSets,
)
from softsplit.tree.parameters import Block

__all__ = [
    "Alternating",
    "Block",
    "Chooser",
    "DecompositionTrace",
    "EvaluationSet",
    "History",
    "LargestViolation",
    "MacroIterations",
    "NodeDecomposition",
    "ProcessorTime",
    "Residual",
    "SingleBranches",
    "StoppingRule",
    "Subtrees",
    "TraceRow",
    "TracedSolution",
    "ValidationAccuracy",
    "View",
    "WorkingSets",
]
