"""What a model file may hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DocumentLimits:
    """What a model file may hold: a small or damaged file must not ask for much memory.

    Attributes
    ----------
    label_characters : int
        Classes times the longest label: an array of strings gives every label that much room.
    nesting : int
        Lists in lists among the training parameters; a cost matrix has two.
    coefficients : int
        Features times branches.
    share_error : float
        How far the class shares of a leaf may be from adding up to one.
    weight : float
        Largest size of a weight or threshold: trees by likelihood have no bounds.
    number : float
        Largest size of any other number. It is as large as in any fitted tree, and differences of
        two such numbers stay finite.
    """

    label_characters: int = 50_000_000
    nesting: int = 20
    coefficients: int = 50_000_000
    share_error: float = 1e-3
    weight: float = 1e12
    number: float = 8e307


LIMITS = DocumentLimits()
