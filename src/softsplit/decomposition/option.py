"""What this option provides: a solver that trains a few nodes at a time."""

from softsplit.support.options import Option

OPTION = Option(
    names={
        "decomposition": "softsplit.decomposition",
        "NodeDecomposition": "softsplit.decomposition.nodes:NodeDecomposition",
        "select_proximal": "softsplit.decomposition.proximal:select_proximal",
    },
    solvers={"decomposition": "softsplit.decomposition.nodes:NodeDecomposition"},
)
