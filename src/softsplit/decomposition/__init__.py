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
    from softsplit.decomposition.stopping import (
        Chooser,
        MacroIterations,
        ProcessorTime,
        Residual,
        StoppingRule,
        ValidationAccuracy,
    )
    from softsplit.decomposition.trace import (
        DecompositionTrace,
        EvaluationSet,
        History,
        TracedSolution,
        TraceRow,
    )
    from softsplit.decomposition.working_sets import (
        Alternating,
        LargestViolation,
        SingleBranches,
        Subtrees,
        View,
        WorkingSets,
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

_HOMES = {
    "Alternating": "working_sets",
    "Chooser": "stopping",
    "DecompositionTrace": "trace",
    "EvaluationSet": "trace",
    "History": "trace",
    "LargestViolation": "working_sets",
    "MacroIterations": "stopping",
    "NodeDecomposition": "nodes",
    "ProcessorTime": "stopping",
    "Residual": "stopping",
    "SingleBranches": "working_sets",
    "StoppingRule": "stopping",
    "Subtrees": "working_sets",
    "TraceRow": "trace",
    "TracedSolution": "trace",
    "ValidationAccuracy": "stopping",
    "View": "working_sets",
    "WorkingSets": "working_sets",
}

__getattr__, __dir__ = late_names(__name__, _HOMES)
