"""The training problem, of either loss: loss + penalties under the constraints.

    minimise   E(a, mu, c) + ridge / 2 |a|^2 + local penalty(a) + global penalty(a)
    subject to bounds, leaf simplex, class coverage, minimum class rates

In the paper E is the expected cost, there is no ridge, and the bounds are the box [-1, 1]. Under
the log-loss E has a prior on the leaves (leaves.py), and thresholds have no bounds: a split may be
as steep as the rows make it, and with ``steepness`` = (unit of the scaling) x n_features a weight
is the change of a split's log-odds per unit.

A problem may be restricted to a block of branches and leaves: the others keep the values of
``anchor``. A restricted problem is a problem like any other, so that solvers need not treat it
differently. A restriction may add a proximal term, which solvers minimise too but which is not part
of the objective, and may replace the rows by an engine that has collapsed the fixed part of the
tree (engines/block.py).

The proximal term of a decomposition step keeps it near the tree before the step:

    value     psi / 2 ( |a - a_s|^2 + |mu - mu_s|^2 + |c - c_s|^2 )
    gradient  psi (a - a_s),  psi (mu - mu_s),  psi (c - c_s)

with (a_s, mu_s, c_s) the tree before the step. Section 6.1 of the paper writes the term in the
parts A+ and A- of a = A+ - A-, with mu among them as the weight of a constant feature. The two
terms are equal while one part of each coefficient is zero and its sign does not change; where a
sign changes, this one is larger by psi |a| |a_s|. Fixed variables equal the centre and add nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import RowEngine, Sums, samples_of
from softsplit.engines.block import CollapsedRows, GateCache
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.outer import IDENTITY
from softsplit.engines.samples import Samples
from softsplit.problem.bounds import Bounds
from softsplit.problem.feature_rules import FeatureRules
from softsplit.problem.leaves import (
    RATE_SLACK,
    ClassAssignment,
    CountedDistributions,
    LeafPrior,
    Violation,
    violation,
)
from softsplit.problem.loss import Evaluation, Loss
from softsplit.problem.order import MonotoneOrder
from softsplit.problem.penalties import Groups, PenaltyPair
from softsplit.problem.rates import RateLimits
from softsplit.problem.size_limits import NO_LIMITS, SizeLimits, tree_size
from softsplit.support.arrays import FloatArray
from softsplit.support.row_budgets import ROWS
from softsplit.tree.parameters import Block, Topology, TreeParameters
from softsplit.tree.routing import split_scores
from softsplit.tree.ways import hard_leaves, needed_in_leaves


@dataclass(frozen=True)
class Proximal:
    """The proximal term: psi (``strength``) and the tree at its centre."""

    strength: float
    centre: TreeParameters

    def __post_init__(self) -> None:
        if not (np.isfinite(self.strength) and self.strength >= 0):
            raise ValueError(f"proximal must be a finite number >= 0, got {self.strength}.")

    def value(self, parameters: TreeParameters) -> float:
        centre = self.centre
        squares = (
            np.sum((parameters.weights - centre.weights) ** 2)
            + np.sum((parameters.thresholds - centre.thresholds) ** 2)
            + np.sum((parameters.leaf_values - centre.leaf_values) ** 2)
        )
        return 0.5 * self.strength * float(squares)


@dataclass(frozen=True)
class TrainingProblem:
    """The definition of one training problem; immutable.

    Parameters
    ----------
    rows : RowEngine
        The training rows and the sums over them.
    topology : Topology
    loss : Loss
    penalties : PenaltyPair
    minimum_rates : array of shape (n_groups,)
        rho_k: minimum of the expected share of class k that is classified correctly.
    steepness : float
        gamma of the gates.
    block : Block, optional
        The free variables; all of them if not given.
    anchor : TreeParameters, optional
        Values of the variables outside the block.
    proximal : Proximal, optional
        A term that solvers add to the objective; see ``merit``.
    bounds : Bounds, optional
        Those of the weights and thresholds; [-1, 1] if not given. One box fits trees of any shape.
    ridge : float
        Factor of half the squared weights.
    limits : SizeLimits
        The largest size of a tree; a solver that cannot keep to it must not be given any.
    rules : FeatureRules, optional
        Variables that must be in the tree, or not together; see ``Solver.keeps_rules``. Their costs
        are the prices of ``penalties``.
    order : MonotoneOrder, optional
        Monotone effects; ``bounds`` have the signs, and a solver must keep the leaves in order.
    rate_limits : RateLimits, optional
        Requirements on rates of any rows (rates.py), beside those of the classes.
    """

    rows: RowEngine
    topology: Topology
    loss: Loss
    penalties: PenaltyPair
    minimum_rates: FloatArray
    steepness: float = 512.0
    block: Block | None = None
    anchor: TreeParameters | None = None
    proximal: Proximal | None = None
    bounds: Bounds = None  # type: ignore[assignment]  # set below
    ridge: float = 0.0
    limits: SizeLimits = NO_LIMITS
    rules: FeatureRules | None = None
    order: MonotoneOrder | None = None
    rate_limits: RateLimits | None = None

    def __post_init__(self) -> None:
        self.loss.leaf_rule.check(self.topology, self.n_groups)
        if self.block is not None and self.anchor is None:
            raise ValueError("a problem restricted to a block needs the anchor outside it.")
        shape = (self.n_features, self.topology.n_branches)
        size = 1.0 if self.bounds is None else self.bounds.size
        if self.bounds is None or (self.bounds.shape != shape and size is not None):
            object.__setattr__(self, "bounds", Bounds.box(*shape, 1.0 if size is None else size))
        if self.bounds.shape != shape:
            raise ValueError(
                f"bounds have the shape {self.bounds.shape}, a tree of this problem has {shape}."
            )

    @property
    def n_features(self) -> int:
        return self.rows.n_features

    @property
    def n_groups(self) -> int:
        return self.rows.n_groups

    @cached_property
    def free_branches(self) -> NDArray[np.bool_]:
        """Branches with free weights and threshold, shape (n_branches,)."""
        return _mask(self.topology.n_branches, self.block.branches if self.block else None)

    @cached_property
    def free_leaves(self) -> NDArray[np.bool_]:
        """Leaves with free classes, shape (n_leaves,)."""
        return _mask(self.topology.n_leaves, self.block.leaves if self.block else None)

    @cached_property
    def global_floor(self) -> FloatArray:
        """Largest |a_jt| over the fixed branches, a lower bound of beta_j = max_t |a_jt|.

        Shape (n_features,), or (n_feature_groups,) with groups of features.
        """
        n_rows = self.n_features if self.feature_groups is None else len(self.feature_groups.sizes)
        if self.anchor is None:
            return np.zeros(n_rows)
        fixed = np.abs(self.anchor.weights[:, ~self.free_branches])
        return np.max(self.penalties.global_.rows(fixed), axis=1, initial=0.0)

    def n_used(self, kept: NDArray[np.bool_]) -> float:
        """Return the number of features, or groups, with a coefficient in the mask ``kept``."""
        return float(np.sum(np.any(self.penalties.global_.rows(kept.astype(float)), axis=1)))

    def price(self, kept: NDArray[np.bool_]) -> float:
        """Return the same with every feature, or group, at its price."""
        used = np.any(self.penalties.global_.rows(kept.astype(float)), axis=1)
        prices = self.penalties.global_.prices
        return float(np.sum(used if prices is None else prices[used]))

    def unneeded(self, parameters: TreeParameters) -> float:
        """Return the part of ``price`` that is not paid since not every case needs a feature.

        Of a price above 1 what is above 1 counts by the share of the rows on whose way a question
        asks for the feature, going left where it is more likely.
        """
        # Hard routing of a sample says which rows need which feature.
        prices, rules = self.penalties.global_.prices, self.rules
        known = rules is not None and rules.costs is not None and self.block is None
        if not known or prices is None or self.feature_groups is None or not np.any(prices > 1.0):
            return 0.0
        kept = parameters.weights != 0
        few, dear = self._few_rows, np.maximum(prices - 1.0, 0.0)
        leaves = hard_leaves(split_scores(parameters, few.features))
        mass = np.bincount(leaves, few.weights, self.topology.n_leaves) / few.weights.sum()
        needed = needed_in_leaves(self.feature_groups.of, len(prices), kept)
        return float(dear @ (needed.any(axis=1) - needed @ mass))

    @cached_property
    def _few_rows(self) -> Samples:
        return self.rows.sample(ROWS.importances)

    def allows(self, parameters: TreeParameters) -> bool:
        """Whether a tree is within the limits of its size and keeps the rules."""
        kept = parameters.weights != 0
        if self.binding_rules is not None and not self.binding_rules.allow(kept):
            return False
        return not self.limits or self.limits.allow(tree_size(kept, self.feature_groups))

    @property
    def binding_rules(self) -> FeatureRules | None:
        """The rules about variables, if there are any that a tree can break."""
        return self.rules if self.rules is not None and self.rules.binding else None

    @property
    def feature_groups(self) -> Groups | None:
        """Groups of features under the global penalty; None if there are none."""
        return self.penalties.global_.groups

    @property
    def log_loss(self) -> bool:
        """Whether the loss is that of loss="log": leaves hold distributions with a prior."""
        return isinstance(self.loss.leaf_rule, CountedDistributions)

    @property
    def linear(self) -> bool:
        """Whether the loss is linear in the leaves, which have one class each, as loss="cost"."""
        return self.loss.outer == IDENTITY and isinstance(self.loss.leaf_rule, ClassAssignment)

    @property
    def by_likelihood(self) -> bool:
        """Whether this is the whole problem of loss="log", with free thresholds."""
        return self.log_loss and self.bounds.free_thresholds and self.block is None

    @property
    def has_order_chart(self) -> bool:
        """Whether descents run in coordinates in which the order of effects is bounds."""
        return self.order is not None and self.by_likelihood

    @property
    def rated(self) -> bool:
        """Whether any class has a minimum rate, or rates have other limits."""
        return self.rate_limits is not None or bool(np.any(self.minimum_rates > 0))

    @property
    def unrated(self) -> TrainingProblem:
        """The same problem without any requirement on rates."""
        return replace(self, minimum_rates=np.zeros(self.n_groups), rate_limits=None)

    @property
    def boxed(self) -> bool:
        """Whether all weights and thresholds have bounds; by likelihood thresholds have none."""
        return self.bounds.boxed

    @property
    def samples(self) -> Samples:
        """All rows as arrays of this process; see ``samples_of``."""
        return samples_of(self.rows)

    @property
    def moving_samples(self) -> Samples:
        """The rows that reach a free branch, if the engine has collapsed the rest; else all."""
        return self.rows.reaching if isinstance(self.rows, CollapsedRows) else self.samples

    @cached_property
    def cost_unit(self) -> float:
        """The loss of a typical error at the mean row weight: the unit of tolerances."""
        return max(self.loss.unit * self.rows.mean_weight, 1e-300)

    @property
    def row_unit(self) -> float:
        """The weight of one row in the units of ridge and prior: the mean row weight, at most 1.

        So integer weights count rows, and weights that sum to one are not weaker evidence.
        """
        return min(1.0, self.rows.mean_weight)

    def restrict(
        self,
        block: Block,
        anchor: TreeParameters,
        *,
        proximal: float = 0.0,
        cache: GateCache | None = None,
    ) -> TrainingProblem:
        """Return the same problem with all variables outside ``block`` fixed at ``anchor``.

        ``proximal`` is psi of a proximal term centred at ``anchor``. With the gates of ``anchor``
        in ``cache``, fixed branches are not evaluated again: trees must then agree with ``anchor``
        outside the block, as those of ``pin`` do. This is not checked, since the check would cost a
        pass over the fixed branches each time.
        """
        return replace(
            self,
            block=block,
            anchor=anchor,
            proximal=Proximal(proximal, anchor) if proximal > 0 else None,
            rows=self._whole if cache is None else CollapsedRows.of(cache, block),
        )

    def on_sample(self, limit: int) -> TrainingProblem:
        """Return the same problem on a stratified sample of about ``limit`` rows in memory, with
        the same total weight of each class."""
        if self.rate_limits is not None:
            few, limits = self.rate_limits.on_sample(limit)
            return replace(self, rows=CompiledRows(few), rate_limits=limits)
        few = self.rows.sample(limit).with_totals(self.rows.group_totals)
        return replace(self, rows=CompiledRows(few))

    @property
    def _whole(self) -> RowEngine:
        """The engine of all rows, also of a restricted problem."""
        return self.rows.whole if isinstance(self.rows, CollapsedRows) else self.rows

    def with_steepness(self, steepness: float) -> TrainingProblem:
        return replace(self, steepness=float(steepness), rows=self._whole)

    def with_penalties(self, penalties: PenaltyPair) -> TrainingProblem:
        return replace(self, penalties=penalties)

    def pin(self, parameters: TreeParameters) -> TreeParameters:
        """Return ``parameters`` with every fixed variable at its value in ``anchor``."""
        if self.anchor is None:
            return parameters
        return TreeParameters(
            np.where(self.free_branches, parameters.weights, self.anchor.weights),
            np.where(self.free_branches, parameters.thresholds, self.anchor.thresholds),
            np.where(self.free_leaves, parameters.leaf_values, self.anchor.leaf_values),
        )

    def cost(self, parameters: TreeParameters) -> float:
        """Return the loss without penalties: expected cost, or log-loss with prior and ridge."""
        return self.evaluate_cost(parameters).value

    def objective(self, parameters: TreeParameters) -> float:
        """Return the cost plus both penalties."""
        return self.cost(parameters) + self.paid(parameters)

    def paid(self, parameters: TreeParameters) -> float:
        """Return both penalties less what cases do not need of dear features (``unneeded``)."""
        full, strength = self.penalty(parameters.weights), self.penalties.global_.strength
        return full - strength * self.unneeded(parameters) if strength > 0 else full

    def penalty(self, weights: FloatArray) -> float:
        """Return the sum of both penalties."""
        return self.penalties.value(weights)

    def merit(self, parameters: TreeParameters) -> float:
        """Return what solvers minimise: the objective plus the proximal term, if there is one."""
        near = 0.0 if self.proximal is None else self.proximal.value(parameters)
        return self.objective(parameters) + near

    def _sums(self, parameters: TreeParameters, prices: FloatArray | None = None) -> Sums:
        """Return the sums of the loss; with ``prices``, plus the expectation of that table."""
        splits, table = parameters.splits, self.loss.table(parameters.leaf_values)
        outer, steepness = self.loss.outer, self.steepness
        if prices is None:
            return self.rows.evaluate(splits, table, outer, steepness)
        if outer == IDENTITY:
            return self.rows.evaluate(splits, table + prices, outer, steepness)
        sums = self.rows.evaluate(splits, table, outer, steepness)
        added = self.rows.evaluate(splits, prices, IDENTITY, steepness)
        return replace(sums, value=sums.value + added.value, splits=sums.splits + added.splits)

    def evaluate_cost(
        self, parameters: TreeParameters, multipliers: FloatArray | None = None
    ) -> Evaluation:
        """Return the cost and its gradient; with multipliers, of cost - multipliers . rates.

        Ridge and prior are part of the cost. The derivative by a fixed variable is zero.
        Multipliers are those of the classes, followed by those of ``rate_limits``, if any.
        """
        if multipliers is None:
            sums = self._sums(parameters)
            return self._regularised(parameters, sums, self.loss.leaf_gradient(sums.table))
        # A multiplier of class k prices its correct mass at -multiplier_k / n_k in every leaf.
        multipliers, others = np.split(multipliers, [self.n_groups])
        per_unit = (multipliers / self.rows.group_totals)[:, None]
        sums = self._sums(parameters, -per_unit * parameters.leaf_values)
        by_leaves = self.loss.leaf_gradient(sums.table) - per_unit * sums.mass
        if self.rate_limits is not None and np.any(others):
            limited, slope = self.rate_limits.priced(parameters, self.steepness, -others)
            sums = replace(
                sums, value=sums.value + limited.value, splits=sums.splits + limited.splits
            )
            by_leaves = by_leaves + slope
        return self._regularised(parameters, sums, by_leaves)

    def _regularised(
        self, parameters: TreeParameters, sums: Sums, by_leaves: FloatArray
    ) -> Evaluation:
        """Return the sums of the rows plus ridge and prior."""
        rule = self.loss.leaf_rule
        if isinstance(rule, LeafPrior):
            term, slope = rule.prior(parameters.leaf_values)
            sums, by_leaves = replace(sums, value=sums.value + term), by_leaves + slope
        if self.ridge > 0:
            weights = parameters.weights
            term = 0.5 * self.ridge * float(np.sum(weights * weights))
            splits = sums.splits.copy()
            splits[:, :-1] += self.ridge * weights.T
            sums = replace(sums, value=sums.value + term, splits=splits)
        return self._evaluation(sums, by_leaves)

    def rate_gradient(self, parameters: TreeParameters, k: int) -> Evaluation:
        """Return the rate of class ``k`` and its gradient, from the rows of that class alone.

        From ``n_groups`` on it is what line k - n_groups of ``rate_limits`` bounds from below.
        """
        if k >= self.n_groups:
            assert self.rate_limits is not None
            unit = np.zeros(len(self.rate_limits))
            unit[k - self.n_groups] = 1.0
            return self._evaluation(*self.rate_limits.priced(parameters, self.steepness, unit))
        totals = self.rows.group_totals[:, None]
        table = parameters.leaf_values / totals
        sums = self.rows.of_group(k).evaluate(parameters.splits, table, IDENTITY, self.steepness)
        return self._evaluation(sums, sums.mass / totals)

    def _evaluation(self, sums: Sums, by_leaves: FloatArray) -> Evaluation:
        weights = np.ascontiguousarray(sums.splits[:, :-1].T)
        thresholds = sums.splits[:, -1].copy()
        if self.block is not None:
            weights = np.where(self.free_branches, weights, 0.0)
            thresholds = np.where(self.free_branches, thresholds, 0.0)
            by_leaves = np.where(self.free_leaves, by_leaves, 0.0)
        return Evaluation(sums.value, weights, thresholds, by_leaves, sums.mass)

    def gradient(self, parameters: TreeParameters) -> TreeParameters:
        """Return the gradient of the objective (a subgradient at kinks) in the shape of a tree."""
        evaluation = self.evaluate_cost(parameters)
        sparse = self.penalties.gradient(parameters.weights)
        return TreeParameters(
            evaluation.weights + np.where(self.free_branches, sparse, 0.0),
            evaluation.thresholds,
            evaluation.leaf_values,
        )

    def shares(self, mass: FloatArray) -> FloatArray:
        """Return R_kl, the share of class k that reaches leaf l, from the leaf masses."""
        return mass / self.rows.group_totals[:, None]

    def rates(self, parameters: TreeParameters, mass: FloatArray | None = None) -> FloatArray:
        """Return the expected share of each class that is classified correctly, (n_groups,)."""
        if mass is None:
            mass = self.evaluate_cost(parameters).mass
        return np.sum(self.shares(mass) * parameters.leaf_values, axis=1)

    def shortfalls(self, parameters: TreeParameters, mass: FloatArray | None = None) -> FloatArray:
        """Return what the rates lack: those of the classes, then the lines of ``rate_limits``.

        Negative where a rate is above its minimum.
        """
        of_groups = self.minimum_rates - self.rates(parameters, mass)
        if self.rate_limits is None:
            return of_groups
        mass_by_class = self.rate_limits.mass(parameters, self.steepness) @ parameters.leaf_values.T
        return np.concatenate([of_groups, self.rate_limits.shortfalls(mass_by_class)])

    def violation(self, parameters: TreeParameters, mass: FloatArray | None = None) -> Violation:
        """Return the largest violation of each family of constraints."""
        short = self.shortfalls(parameters, mass)
        largest = violation(parameters, short, self.loss.leaf_rule, self.bounds)
        if self.order is None:
            return largest
        order = self.order.violation(parameters, self.steepness)
        return replace(largest, leaves=max(largest.leaves, order))

    def within(self, parameters: TreeParameters) -> TreeParameters:
        """Return a start within the bounds, if these are no box, and in the monotone order.

        Rules draw trees within the box of a formulation by themselves.
        """
        if self.order is not None:
            parameters = self.order.admitted(parameters, self.steepness)
        if self.bounds.size is None:
            parameters = self.pin(self.bounds.project_tree(parameters))
        return parameters

    def best_leaves(self, parameters: TreeParameters) -> TreeParameters:
        """Return the tree with the cheapest feasible leaf classes for its routing.

        Raises
        ------
        softsplit.problem.leaves.InfeasibleLeafStep
            If no leaf classes meet the minimum class rates.
        """
        sums = self._sums(parameters)
        gradient = self.loss.leaf_gradient(sums.table)
        # Requirements on any rows are lines in the leaves; minimum class rates are among them.
        rule, limits = self.loss.leaf_rule, self.rate_limits
        if limits is not None and isinstance(rule, ClassAssignment):
            if not np.any(self.free_leaves):  # those of a monotone order
                return self.pin(parameters)
            asked = limits.with_minimum(self.minimum_rates)
            lines = asked.on_leaves(asked.mass(parameters, self.steepness))
            leaves = rule.within(gradient, lines, asked.least)
            return replace(parameters, leaf_values=leaves)
        leaves = self.leaves_for(gradient, sums.mass, parameters.leaf_values, self.minimum_rates)
        better = replace(parameters, leaf_values=leaves)
        if self.loss.outer == IDENTITY and self.loss.leaf_rule.exact:
            return better
        # A loss that is not linear in the leaves: the step only moves towards the optimum.
        allowed = self.violation(parameters, sums.mass).largest <= RATE_SLACK
        return parameters if allowed and self.cost(better) > self.cost(parameters) else better

    def leaves_for(
        self,
        gradient: FloatArray,
        mass: FloatArray,
        current: FloatArray,
        minimum_rates: FloatArray | None = None,
    ) -> FloatArray:
        """Return the leaf step for a gradient by leaf classes and leaf masses; see ``LeafRule``."""
        rule, free = self.loss.leaf_rule, None
        shares = mass  # ignored unless there are minimum rates or fixed leaves
        if self.block is not None or minimum_rates is not None:
            shares = self.shares(mass)
            free = None if self.block is None else self.free_leaves
        return rule.step(gradient, shares, minimum_rates, free, current)


def _mask(size: int, chosen: tuple[int, ...] | None) -> NDArray[np.bool_]:
    mask = np.full(size, chosen is None)
    if chosen is not None:
        mask[list(chosen)] = True
    return mask
