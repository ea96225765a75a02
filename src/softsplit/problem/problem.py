"""The training problem of the paper: loss + penalties under the constraints.

    minimise   E(a, mu, c) + local penalty(a) + global penalty(a)
    subject to box, leaf simplex, class coverage, minimum class rates

A problem may be restricted to a block of branches and leaves: the others keep the values of
``anchor``. A restricted problem is a problem like any other, so a solver need not know. Two things
may come with a restriction: a proximal term, which solvers lower too but which is no part of the
objective, and the fixed part of the tree worked out in advance (collapse.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import Evaluation
from softsplit.engines.block import Collapsed, GateCache
from softsplit.engines.compiled import evaluate
from softsplit.engines.samples import Samples
from softsplit.problem.leaves import Violation, leaf_step, violation
from softsplit.problem.loss import ClassRates, ExpectedCost
from softsplit.problem.penalties import PenaltyPair
from softsplit.problem.proximal import Proximal
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import Block, Topology, TreeParameters


@dataclass(frozen=True)
class TrainingProblem:
    """Everything that defines one training problem; immutable.

    Parameters
    ----------
    samples : Samples
    topology : Topology
    loss : ExpectedCost
    penalties : PenaltyPair
    minimum_rates : array of shape (n_classes,)
        rho_k: the least expected share of each class that must be classified correctly.
    steepness : float
        gamma of the gates.
    block : Block, optional
        The variables that may move; all of them if not given.
    anchor : TreeParameters, optional
        Values of the variables outside the block.
    proximal : Proximal, optional
        A term that solvers add to the objective; see ``merit``.
    collapsed : Collapsed, optional
        The fixed part of the tree at ``anchor``, so that it need not be evaluated again.
    """

    samples: Samples
    topology: Topology
    loss: ExpectedCost
    penalties: PenaltyPair
    minimum_rates: FloatArray
    steepness: float = 512.0
    block: Block | None = None
    anchor: TreeParameters | None = None
    proximal: Proximal | None = None
    collapsed: Collapsed | None = None

    def __post_init__(self) -> None:
        if self.topology.n_leaves < self.n_classes:
            raise ValueError(
                f"depth {self.topology.depth} gives {self.topology.n_leaves} leaves for "
                f"{self.n_classes} classes; each class needs a leaf, so raise depth to at least "
                f"{Topology.for_classes(self.n_classes).depth} or use depth='auto'."
            )
        if self.block is not None and self.anchor is None:
            raise ValueError("a problem restricted to a block needs the anchor outside it.")

    @property
    def n_features(self) -> int:
        return self.samples.n_features

    @property
    def n_classes(self) -> int:
        return self.samples.n_classes

    @cached_property
    def free_branches(self) -> NDArray[np.bool_]:
        """Branches whose weights and threshold may move, shape (n_branches,)."""
        return _mask(self.topology.n_branches, self.block.branches if self.block else None)

    @cached_property
    def free_leaves(self) -> NDArray[np.bool_]:
        """Leaves whose classes may move, shape (n_leaves,)."""
        return _mask(self.topology.n_leaves, self.block.leaves if self.block else None)

    @cached_property
    def global_floor(self) -> FloatArray:
        """Largest |a_jt| over the fixed branches: beta_j cannot fall below it, (n_features,)."""
        if self.anchor is None:
            return np.zeros(self.n_features)
        fixed = np.abs(self.anchor.weights[:, ~self.free_branches])
        return np.max(fixed, axis=1, initial=0.0)

    @property
    def moving_samples(self) -> Samples:
        """The rows that the free branches may route otherwise: all, unless that is worked out."""
        return self.samples if self.collapsed is None else self.collapsed.samples

    @cached_property
    def cost_unit(self) -> float:
        """The dearest error at the mean row weight, relative to 0.5: the unit of tolerances."""
        dearest = float(np.max(self.loss.costs)) / 0.5
        return max(dearest * float(self.samples.weights.mean()), 1e-300)

    def restrict(
        self,
        block: Block,
        anchor: TreeParameters,
        *,
        proximal: float = 0.0,
        cache: GateCache | None = None,
    ) -> TrainingProblem:
        """The same problem with everything outside ``block`` fixed at ``anchor``.

        ``proximal`` is psi of a proximal term centred at ``anchor``. With the gates of
        ``anchor`` in ``cache``, fixed branches are not evaluated again: the problem then takes
        trees that agree with ``anchor`` outside the block, as those of ``pin`` do, and does not
        look whether they do, which would cost a pass over the fixed branches each time.
        """
        return replace(
            self,
            block=block,
            anchor=anchor,
            proximal=Proximal(proximal, anchor) if proximal > 0 else None,
            collapsed=None if cache is None else Collapsed.of(cache, block),
        )

    def with_steepness(self, steepness: float) -> TrainingProblem:
        return replace(self, steepness=float(steepness), collapsed=None)

    def with_penalties(self, penalties: PenaltyPair) -> TrainingProblem:
        return replace(self, penalties=penalties)

    def pin(self, parameters: TreeParameters) -> TreeParameters:
        """``parameters`` with every fixed variable put back to its anchor."""
        if self.anchor is None:
            return parameters
        return TreeParameters(
            np.where(self.free_branches, parameters.weights, self.anchor.weights),
            np.where(self.free_branches, parameters.thresholds, self.anchor.thresholds),
            np.where(self.free_leaves, parameters.leaf_classes, self.anchor.leaf_classes),
        )

    def cost(self, parameters: TreeParameters) -> float:
        """Expected misclassification cost alone."""
        return self.evaluate_cost(parameters).value

    def objective(self, parameters: TreeParameters) -> float:
        """Expected cost plus penalties."""
        return self.cost(parameters) + self.penalties.value(parameters.weights)

    def merit(self, parameters: TreeParameters) -> float:
        """What a solver lowers: the objective and the proximal term, if there is one."""
        near = 0.0 if self.proximal is None else self.proximal.value(parameters)
        return self.objective(parameters) + near

    def _evaluate(
        self, parameters: TreeParameters, extra_table: FloatArray | None = None
    ) -> Evaluation:
        if self.collapsed is not None:
            return self.collapsed.evaluate(self.loss, parameters, extra_table)
        return evaluate(self.loss, self.samples, parameters, self.steepness, extra_table)

    def evaluate_cost(
        self, parameters: TreeParameters, multipliers: FloatArray | None = None
    ) -> Evaluation:
        """Cost and gradient; with multipliers, of the Lagrangian cost - multipliers . rates.

        The gradient of a fixed variable is zero.
        """
        if multipliers is None:
            found = self._evaluate(parameters)
            return self._mask_gradient(found, found.leaf_classes)
        per_unit = (multipliers / self.samples.class_totals)[:, None]
        extra = -per_unit * parameters.leaf_classes
        found = self._evaluate(parameters, extra)
        return self._mask_gradient(found, found.leaf_classes - per_unit * found.mass)

    def rate_gradient(self, parameters: TreeParameters, k: int) -> Evaluation:
        """Rate of class ``k`` and its gradient, from the rows of that class alone."""
        rates = ClassRates(self.samples.class_totals)
        found = evaluate(rates, self.samples.of_class(k), parameters, self.steepness)
        return self._mask_gradient(found, found.leaf_classes)

    def _mask_gradient(self, found: Evaluation, leaf_gradient: FloatArray) -> Evaluation:
        if self.block is None:
            return replace(found, leaf_classes=leaf_gradient)
        return replace(
            found,
            weights=np.where(self.free_branches, found.weights, 0.0),
            thresholds=np.where(self.free_branches, found.thresholds, 0.0),
            leaf_classes=np.where(self.free_leaves, leaf_gradient, 0.0),
        )

    def gradient(self, parameters: TreeParameters) -> TreeParameters:
        """Gradient of the objective, where the penalties have one, in the shape of a tree."""
        found = self.evaluate_cost(parameters)
        sparse = self.penalties.gradient(parameters.weights)
        return TreeParameters(
            found.weights + np.where(self.free_branches, sparse, 0.0),
            found.thresholds,
            found.leaf_classes,
        )

    def shares(self, mass: FloatArray) -> FloatArray:
        """R_kl: share of class k that reaches leaf l, from the leaf masses of the expected cost."""
        return mass / self.samples.class_totals[:, None]

    def rates(self, parameters: TreeParameters, mass: FloatArray | None = None) -> FloatArray:
        """Expected share of each class that is classified correctly, (n_classes,)."""
        if mass is None:
            mass = self.evaluate_cost(parameters).mass
        return np.sum(self.shares(mass) * parameters.leaf_classes, axis=1)

    def violation(self, parameters: TreeParameters, mass: FloatArray | None = None) -> Violation:
        """How far the tree is from feasible."""
        return violation(parameters, self.rates(parameters, mass), self.minimum_rates)

    def best_leaves(self, parameters: TreeParameters) -> TreeParameters:
        """The tree with the cheapest feasible leaf classes for its routing.

        Raises
        ------
        softsplit.problem.leaves.InfeasibleLeafStep
            If no leaf classes meet the minimum class rates.
        """
        found = self._evaluate(parameters)
        leaves = self.leaves_for(found.mass, parameters.leaf_classes, self.minimum_rates)
        return replace(parameters, leaf_classes=leaves)

    def leaves_for(
        self, mass: FloatArray, current: FloatArray, minimum_rates: FloatArray
    ) -> FloatArray:
        """The cheapest leaf classes for these leaf masses, (n_classes, n_leaves); see leaf_step."""
        free = None if self.block is None else self.free_leaves
        costs = self.loss.leaf_gradient(mass)
        return leaf_step(costs, self.shares(mass), minimum_rates, free, current)


def _mask(size: int, chosen: tuple[int, ...] | None) -> NDArray[np.bool_]:
    mask = np.full(size, chosen is None)
    if chosen is not None:
        mask[list(chosen)] = True
    return mask
