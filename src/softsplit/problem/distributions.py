"""Leaves with class distributions, for the log-loss.

With G the derivative of the loss by c for a fixed routing:

    ClassDistributions   the log-loss is least where each leaf has the class shares of the rows it
                         is responsible for: expectation steps, c_kl in proportion to -c_kl G_kl
    CountedDistributions the same with pseudo-counts s_k in every leaf, a prior
                         - sum_kl s_k log c_kl: c_kl in proportion to s_k - c_kl G_kl
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from softsplit.problem.leaves import RATE_SLACK, InfeasibleLeafStep
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Topology

TINY_SHARE = 1e-300
"""Floor under the logarithm of a share."""

SMOOTHING = 0.02
"""Part of a leaf's distribution that every class shares, so that no row gets probability zero."""


class Distributions(ABC):
    """What rules of class distributions share: any leaves are allowed, and expectation steps."""

    exact = False

    def check(self, topology: Topology, n_classes: int) -> None:  # noqa: B027 (nothing to refuse)
        """Any number of leaves will do."""

    def coverage(self, leaf_classes: FloatArray) -> float:
        return 0.0

    @abstractmethod
    def expected(self, responsibility: FloatArray) -> FloatArray:
        """Leaves from the weight of rows of class k that leaf l is responsible for."""

    def step(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        minimum_rates: FloatArray | None,
        free: NDArray[np.bool_] | None = None,
        current: FloatArray | None = None,
    ) -> FloatArray:
        """One expectation step from ``current``; ``gradient`` is that of the loss alone.

        Where it would miss the rates it goes only as far as they allow.
        """
        if current is None:
            raise ValueError("a step of class distributions needs the current ones.")
        leaves = self.expected(-current * gradient)
        if free is not None:
            leaves = np.where(free, leaves, current)
        return _within_rates(leaves, current, shares, minimum_rates)


@dataclass(frozen=True)
class ClassDistributions(Distributions):
    """A distribution over the classes in every leaf, mixed with a little of every class."""

    smoothing: float = SMOOTHING

    def without_features(self, shares: FloatArray) -> FloatArray:
        return self.soften(shares)

    def soften(self, leaf_classes: FloatArray) -> FloatArray:
        """Mix in a little of every class, so that no row gets probability zero."""
        return (1 - self.smoothing) * leaf_classes + self.smoothing / len(leaf_classes)

    def expected(self, responsibility: FloatArray) -> FloatArray:
        return self.soften(responsibility / np.maximum(responsibility.sum(axis=0), TINY_SHARE))

    def gap(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        free: NDArray[np.bool_] | None,
        leaf_classes: FloatArray,
    ) -> float:
        """Over the distributions that hold at least the share of every class that is mixed in."""
        least = self.smoothing / len(leaf_classes)
        movable = leaf_classes - least
        gain = np.sum(gradient * movable, axis=0) - gradient.min(axis=0) * movable.sum(axis=0)
        if free is not None:
            gain = np.where(free, gain, 0.0)
        return float(max(0.0, np.sum(gain)))


@runtime_checkable
class LeafPrior(Protocol):
    """A leaf rule that adds a term of the leaves to the loss."""

    def prior(self, leaf_classes: FloatArray) -> tuple[float, FloatArray]:
        """The term and its derivative, (n_classes, n_leaves)."""


@dataclass(frozen=True)
class CountedDistributions(Distributions):
    """A distribution over the classes in every leaf, as if it had seen a few rows before.

    ``pseudo_counts`` (n_classes,) are those rows: no class has probability zero, and a leaf that
    hardly any row reaches has their shares.
    """

    pseudo_counts: FloatArray

    def without_features(self, shares: FloatArray) -> FloatArray:
        return shares

    def prior(self, leaf_classes: FloatArray) -> tuple[float, FloatArray]:
        counts, held = self.pseudo_counts[:, None], np.maximum(leaf_classes, TINY_SHARE)
        return -float(np.sum(counts * np.log(held))), -counts / held

    def expected(self, responsibility: FloatArray) -> FloatArray:
        counts = self.pseudo_counts[:, None] + responsibility
        shares: FloatArray = counts / counts.sum(axis=0)
        return shares

    def gap(
        self,
        gradient: FloatArray,
        shares: FloatArray,
        free: NDArray[np.bool_] | None,
        leaf_classes: FloatArray,
    ) -> float:
        """Largest derivative by a log-odds of a leaf; ``gradient`` is that of loss and prior."""
        mean = np.sum(leaf_classes * gradient, axis=0)
        residual = np.abs(leaf_classes * (gradient - mean))
        return float(np.max(residual if free is None else residual[:, free], initial=0.0))


def _within_rates(
    leaves: FloatArray, current: FloatArray, shares: FloatArray, minimum_rates: FloatArray | None
) -> FloatArray:
    """``leaves``, or as much of the way there from ``current`` as the class rates allow."""
    if minimum_rates is None:
        return leaves
    here, there = (np.sum(shares * one, axis=1) for one in (current, leaves))
    least = minimum_rates - RATE_SLACK
    if np.all(there >= least):
        return leaves
    if np.any(here < least):
        raise InfeasibleLeafStep("the class distributions miss the minimum class rates.")
    falling = there < here  # rates are linear in the leaves
    part = np.min((here - least)[falling] / (here - there)[falling], initial=1.0)
    return current + part * (leaves - current)


DISTRIBUTIONS = ClassDistributions()
"""The rule of a log-loss without a prior."""
