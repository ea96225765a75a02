"""A tree by itself: its shape and parameters, how it routes rows, how features are scaled."""

from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Block, Step, Topology, TreeParameters

__all__ = ["Block", "FloatArray", "Step", "Topology", "TreeParameters"]
