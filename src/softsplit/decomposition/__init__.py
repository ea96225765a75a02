"""Decomposition methods (section 6 of the paper): train a few nodes of the tree at a time.

``NodeDecomposition`` is the solver. An own working-set rule is an object with ``blocks(view)``, an
own stopping rule one with ``reached(history)``: ``WorkingSets`` and ``StoppingRule`` are their
protocols, ``View`` and ``History`` what they are handed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softsplit.support.options import late_names
from softsplit.tree.parameters import Block

if TYPE_CHECKING:
    from softsplit.decomposition.nodes import NodeDecomposition
    from softsplit.decomposition.rules import (
        Alternating,
        Chooser,
        LargestViolation,
        MacroIterations,
        ProcessorTime,
        Residual,
        SingleBranches,
        StoppingRule,
        Subtrees,
        ValidationAccuracy,
        View,
        WorkingSets,
    )
    from softsplit.decomposition.trace import (
        DecompositionTrace,
        EvaluationSet,
        History,
        TracedSolution,
        TraceRow,
    )

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

__getattr__, __dir__ = late_names(__name__, __all__, "trace", "rules", "nodes")
