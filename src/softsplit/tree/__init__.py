"""A tree by itself: topology, parameters, routing of rows, scaling of features, sparsity."""

from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Block, Step, Topology, TreeParameters

__all__ = ["Block", "FloatArray", "Step", "Topology", "TreeParameters"]
