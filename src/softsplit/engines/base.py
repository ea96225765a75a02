"""TODO."""

from __future__ import annotations

from dataclasses import dataclass

from softsplit.support.arrays import FloatArray


@dataclass(frozen=True)
class Evaluation:
    """A value with its gradient; ``mass[k, l]`` is the weight of class k that reaches leaf l."""

    value: float
    weights: FloatArray
    thresholds: FloatArray
    leaf_classes: FloatArray
    mass: FloatArray
