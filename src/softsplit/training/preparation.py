"""From validated rows and the parameters of a model to a training problem.

    prepare(settings, rows) -> Prepared

An estimator checks its ``Rows`` once; folds and samples are parts of them. All objects are
immutable: other strengths or other classes make new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations, product
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import drawn_from
from softsplit.engines.compiled import InMemory
from softsplit.engines.outer import IDENTITY, LOGARITHM
from softsplit.engines.registry import check_engine
from softsplit.engines.samples import Samples
from softsplit.engines.sparse import SparseRows
from softsplit.fitted.importance import feature_importances
from softsplit.fitted.leaf_shares import EXPECTATION_STEPS, decision_gains, smoothed_shares
from softsplit.fitted.model import TreeModel, used_shares
from softsplit.fitted.monotone import (
    in_order,
    order_directions,
    ordered_leaves,
    ordered_walk,
    walk_order,
)
from softsplit.fitted.pruning import oriented, simplified
from softsplit.fitted.rates import RateRecord
from softsplit.fitted.summary import FeatureSummary
from softsplit.fitted.walk import Arriving, Walk
from softsplit.fitted.walk_choice import FixedParts
from softsplit.fitted.walk_rounding import fit_walk, rounded_shares
from softsplit.formulations import formulation_of
from softsplit.formulations import settings as parse
from softsplit.formulations.feature_rules import check_room
from softsplit.formulations.model_settings import ModelSettings
from softsplit.problem.feature_rules import FeatureRules
from softsplit.problem.leaves import ClassAssignment
from softsplit.problem.loss import check_loss
from softsplit.problem.order import MonotoneOrder
from softsplit.problem.penalties import Groups, PenaltyPair
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.targets import Classes
from softsplit.solvers.base import Solution
from softsplit.solvers.elimination.working_set import moved, on_columns
from softsplit.support.arrays import FloatArray
from softsplit.support.row_budgets import ROWS
from softsplit.training.decisions import decided_by_mixture, decided_cells, rated_walk, worst
from softsplit.training.rows import ColumnSubset, EngineRows, Rows, TrainingRows
from softsplit.tree.parameters import Block, TreeParameters
from softsplit.tree.scaling import LinearScaling, Scaling
from softsplit.variables import Coding, MonotoneEffects

RAISES = 16
"""Times that a class which a walk finds too rarely is made worth more, by a half each."""

IDLE = 1e-12
"""Branches without which no class probability changes by more are left out."""

ROUNDED_IDLE = 1e-5
"""The same for a tree whose gates and leaves are rounded (``decision="walk"``): a side that
hardly any row takes would be printed as a question that everybody answers alike."""

STRUCTURES = 6
"""Most ways to put the classes on the leaves that are tried under monotone effects."""


@dataclass(frozen=True)
class Prepared:
    """A training problem, and what turns its solution into a fitted tree.

    Attributes
    ----------
    settings : ModelSettings
    classes : array of shape (n_classes,)
    names : array of str, optional
        Names of the columns, if X had any.
    scaling : Scaling
    problem : TrainingProblem
    summary : FeatureSummary
    coding, target
        As of ``Rows``.
    class_factors : array of shape (n_classes,), optional
        As of ``EngineRows``, and so is ``labelled``.
    rules : FeatureRules, optional
    monotone : MonotoneEffects, optional
        As of ``Rows``.
    """

    settings: ModelSettings
    classes: NDArray[Any]
    names: NDArray[Any] | None
    scaling: Scaling
    problem: TrainingProblem
    summary: FeatureSummary
    coding: Coding | None = None
    target: str | None = None
    class_factors: FloatArray | None = None
    labelled: Samples | None = None
    rules: FeatureRules | None = None
    monotone: MonotoneEffects | None = None

    @property
    def named(self) -> bool:
        """Whether the columns of X had names."""
        return self.names is not None if self.coding is None else self.coding.named

    @property
    def placed(self) -> EngineRows:
        """The scaled rows, for further problems on the same rows."""
        wide = isinstance(self.problem.rows, SparseRows)
        return EngineRows(
            scaling=self.scaling,
            engine=self.problem.rows,
            summary=self.summary,
            coding=self.coding if wide else None,
            class_factors=self.class_factors,
            labelled=self.labelled,
            rate_limits=self.problem.rate_limits,
        )

    @property
    def n_rows(self) -> int:
        """Number of distinct rows of positive weight."""
        return self.problem.rows.n_rows

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns; x0, x1, ... if X had none."""
        if self.names is None:
            return tuple(f"x{j}" for j in range(self.problem.n_features))
        return tuple(map(str, self.names))

    def with_strengths(self, local: float, global_: float) -> Prepared:
        """Return the same problem and settings with other strengths."""
        return replace(
            self,
            settings=self.settings.with_strengths(local, global_),
            problem=with_strengths(self.problem, local, global_),
        )

    def _on(self, rows: SparseRows) -> Prepared:
        """Return the problem on another working set of its table."""
        if rows is self.problem.rows:
            return self
        placed = cast(EngineRows, rows.placed)
        return replace(
            self,
            names=placed.names(self.names),
            scaling=placed.scaling,
            problem=on_columns(self.problem, rows),
            summary=placed.summary,
            coding=placed.coding,
        )

    def taking(
        self, trees: Sequence[tuple[TreeParameters, ColumnSubset | None]]
    ) -> tuple[Prepared, list[TreeParameters]]:
        """Return the problem with all columns that some trees use, and the trees on its columns.

        ``trees`` are of other rows of the same table, each with the working set it was trained on.
        """
        rows = self.problem.rows
        known = [(tree, within.columns) for tree, within in trees if within is not None]
        if not known or not isinstance(rows, SparseRows):
            return self, [tree for tree, _ in trees]
        used = [columns[np.any(tree.weights, axis=1)] for tree, columns in known]
        rows = rows.with_columns(np.concatenate(used))
        return self._on(rows), [moved(tree, columns, rows.columns) for tree, columns in known]

    def structures(self) -> list[Prepared]:
        """Return the problem with other classes on its leaves, where these are fixed."""
        problem = self.problem
        if problem.order is None or problem.anchor is None:
            return [self]
        return [replace(self, problem=one) for one in ordered_structures(problem, problem.order)]

    def structure_of(self, solution: Solution) -> Prepared:
        """Return the problem with the classes on its leaves that a solution has there."""
        leaves = solution.parameters.leaf_values
        for one in self.structures():
            anchor = one.problem.anchor
            if anchor is not None and np.array_equal(anchor.leaf_values, leaves):
                return one
        return self

    def with_terms(self, most: int | None) -> Prepared:
        """Return the same problem for questions of at most ``most`` terms; as it is for None."""
        if most is None:
            return self
        limits = replace(self.problem.limits, terms=most)
        return replace(self, problem=replace(self.problem, limits=limits))

    def with_features(self, most: int) -> Prepared:
        """Return the same problem and settings for trees of at most ``most`` features."""
        limits = replace(self.problem.limits, features=most)
        return replace(
            self,
            settings=replace(self.settings, max_features=most),
            problem=replace(self.problem, limits=limits),
        )

    def tree(
        self,
        solution: Solution,
        zero_threshold: float,
        *,
        importances: bool = True,
    ) -> TreeModel:
        """Return the fitted tree of a solution; ``importances`` take a pass over the rows.

        Where leaves hold one class each, the class shares of the rows that reach them are computed
        as well. Where leaves hold distributions, the cost matrix decides at prediction. Where the
        formulation prunes, branches without effect are removed, and the tree may be shallower. A
        solution on another working set makes a tree on that one. Earlier classes stand on the left
        of every branch. With ``decision="walk"`` the tree is rounded and gets the walk that decides
        its classes.
        """
        rows = self.problem.rows
        if solution.screening is not None and isinstance(rows, SparseRows):
            here = self._on(rows.of_working_set(solution.screening.columns))
            if here is not self:
                return here.tree(solution, zero_threshold, importances=importances)
        parameters, shares = solution.parameters, None
        problem, steepness = self.problem, self.problem.steepness
        if formulation_of(self.settings.loss).prunes:
            # rates of any rows hold to less than what a rounded tree may change
            rounded = self.settings.decision == "walk" and problem.rate_limits is None
            smaller = simplified(parameters, steepness, ROUNDED_IDLE if rounded else IDLE)
            kept = self.problem.binding_rules
            if kept is None or kept.allow(smaller.weights != 0):
                parameters = smaller
        mass = rows.evaluate(parameters.splits, parameters.leaf_values, IDENTITY, steepness).mass
        parameters = oriented(parameters, mass)
        assigned = self.assigned
        costs = None if assigned else self.settings.cost_matrix
        costs = None if costs is None else np.array(costs, dtype=float)
        walk = None
        if self.settings.decision == "walk" and not assigned:
            parameters, walk, costs = self.walk(parameters, costs, zero_threshold)
        shares_there = self.leaf_shares(parameters) if assigned else None
        weights = mass.sum(axis=0)
        parameters, shares_there = self.ordered(parameters, shares_there, weights, walk is not None)
        if importances:
            drawn = drawn_from(problem.rows, ROWS.importances)
            lines = drawn.lines_in_use(np.any(parameters.weights, axis=1))
            shares = feature_importances(parameters, steepness, lines, drawn.weights)
        return TreeModel(
            parameters=parameters,
            steepness=steepness,
            scaling=self.scaling,
            classes=self.classes,
            feature_names=self.feature_names,
            summary=self.summary,
            zero_threshold=float(zero_threshold),
            importances=None if shares is None else used_shares(shares, parameters.weights),
            objective=solution.objective,
            n_iter=max(1, solution.n_iter),
            distributions=shares_there,
            call_costs=costs,
            coding=self.coding,
            target=self.target,
            walk=walk,
            column_costs=None if self.rules is None else self.rules.costs,
            monotone=self.monotone,
            rates=self._rates(parameters, solution, walk, costs),
        )

    def _rates(
        self,
        tree: TreeParameters,
        solution: Solution,
        walk: Walk | None,
        costs: FloatArray | None,
    ) -> tuple[RateRecord, ...]:
        """What was required of rates, and what the tree holds on the training rows."""
        limits = self.problem.rate_limits
        if limits is None:
            return ()
        steepness, n_classes = self.problem.steepness, len(self.classes)
        expected = limits.mass(tree, steepness) @ tree.leaf_values.T
        gains = np.eye(n_classes) if costs is None else decision_gains(costs)
        decided = decided_by_mixture(tree, steepness, limits, gains)
        if walk is not None:
            decided = decided_cells(walk, limits, self.scaling, n_classes)
        prices, totals = np.zeros(len(limits)), limits.rows.group_totals
        if len(solution.kkt.multipliers) > n_classes:
            prices = solution.kkt.multipliers[n_classes:]
        costs_of = limits.per_requirement(prices)
        return tuple(
            RateRecord(
                one.name,
                str(self.classes[one.of]),
                tuple(group.name for group in one.groups),
                one.low,
                one.high,
                tuple(limits.group_rates(n, expected).tolist()),
                tuple(limits.group_rates(n, decided).tolist()),
                tuple(float(totals[list(group.cells)].sum()) for group in one.groups),
                float(costs_of[n]),
                float(limits.grains[n]),
            )
            for n, one in enumerate(limits.requirements)
        )

    def ordered(
        self,
        tree: TreeParameters,
        shares: FloatArray | None,
        mass: FloatArray,
        rounded: bool,
    ) -> tuple[TreeParameters, FloatArray | None]:
        """Return the tree with its leaves in the order that monotone effects require.

        ``shares`` (n_classes, n_leaves) are those of a tree whose leaves have one class each, which
        are put in order instead; ``mass`` (n_leaves,) is what each leaf counts in a mean; means
        are ``rounded`` as those of a walk.
        """
        if self.monotone is None:
            return tree, shares
        direction = order_directions(self.monotone, self.scaling.splits(tree)[0])
        if shares is not None:
            return tree, ordered_leaves(shares, mass, direction, self.monotone)
        again = rounded_shares if rounded else (lambda one: one)
        leaves = ordered_leaves(tree.leaf_values, mass, direction, self.monotone, again)
        return replace(tree, leaf_values=leaves), None

    def walk(
        self,
        tree: TreeParameters,
        costs: FloatArray | None,
        zero_threshold: float,
        fixed: FixedParts | None = None,
    ) -> tuple[TreeParameters, Walk, FloatArray | None]:
        """Return the rounded tree, its walk with the training rows that arrive, and the costs.

        ``fixed`` parts of the walk stay as they are.

        Under minimum class rates, errors of classes that the walk finds too rarely cost more and
        more, until it meets the rates on the training rows, or ``raises`` times. Under other
        requirements on rates cuts and classes of leaves move where the decisions miss them
        (decisions.py).
        """
        rows, rates = self.problem.rows, self.problem.minimum_rates
        limits = self.problem.rate_limits
        constrained = self.problem.rated
        few = self.arriving(ROWS.walk, np.any(tree.weights, axis=1))
        counted = few if rows.n_rows <= ROWS.walk else self.arriving()
        best, least = None, np.inf
        for _ in range(RAISES):
            gains = np.eye(len(self.classes)) if costs is None else decision_gains(costs)
            made, walk = fit_walk(
                tree, self.problem.steepness, self.scaling, few, gains, zero_threshold,
                constrained=constrained, monotone=self._bent_columns, fixed=fixed,
            )  # fmt: skip
            decided = None if constrained else gains
            walk = walk.counted(counted, self.scaling, decided, self.class_factors)
            walk = walk if fixed is None else replace(walk, classes=fixed.kept(walk.classes))
            if self.monotone is not None:
                votes = gains.T @ made.leaf_values
                walk = ordered_walk(walk, self.monotone, gains, votes)
            missed = np.maximum(rates - walk.recall, 0.0)
            if missed.sum() < least:
                best, least = (made, walk, costs), float(missed.sum())
            if not np.any(missed > 1e-9):
                break
            costs = 1.0 - np.eye(len(self.classes)) if costs is None else costs
            costs = np.where(missed > 1e-9, 1.5, 1.0)[:, None] * costs
        assert best is not None
        made, walk, costs = best
        if limits is None:
            return best
        limits = limits.asked.with_minimum(rates)
        missed_by = worst(limits, decided_cells(walk, limits, self.scaling, len(rates)))
        if missed_by > 0.0:
            gains = np.eye(len(rates)) if costs is None else decision_gains(costs)
            known = made, self.problem.steepness, self.scaling, limits, gains
            walk = rated_walk(walk, *known, self._order_of(walk))
            walk = walk.counted(counted, self.scaling, None, self.class_factors)
        return made, walk, costs

    def _order_of(self, walk: Walk) -> Callable[[NDArray[np.intp]], bool]:
        """Whether classes of all leaves of ``walk`` are in the order of monotone effects."""
        if self.monotone is None:
            return lambda classes: True
        direction, levels = walk_order(walk, self.monotone), np.array(self.monotone.levels, float)
        return lambda classes: in_order(levels[classes][None], direction, 1)

    @property
    def _bent_columns(self) -> list[NDArray[np.intp]]:
        """Features of each monotone variable."""
        columns = () if self.monotone is None else self.monotone.columns
        return [np.array(own, dtype=np.intp) for own in columns]

    def arriving(self, limit: int | None = None, used: NDArray[np.bool_] | None = None) -> Arriving:
        """Return about ``limit`` rows with their labels, as a walk takes them.

        Features that are not ``used`` may be zero: hinges of many rows are computed here.
        """
        if self.labelled is None:
            if limit is not None and used is not None:
                drawn = drawn_from(self.problem.rows, limit)
                lines = np.asarray(drawn.lines_in_use(used), dtype=float)
                return Arriving(lines, drawn.labels, drawn.weights)
            samples = self.problem.rows.sample(limit)
        else:
            samples = self.labelled if limit is None else self.labelled.stratified(limit)
        return Arriving(samples.features, samples.labels, samples.weights)

    @property
    def assigned(self) -> bool:
        """Whether leaves hold one class each."""
        return isinstance(self.problem.loss.leaf_rule, ClassAssignment)

    def leaf_shares(self, tree: TreeParameters) -> FloatArray:
        """Class shares of the rows that reach each leaf, (n_classes, n_leaves)."""
        rows, steepness = self.problem.rows, self.problem.steepness
        splits, classes = tree.splits, tree.leaf_values
        known = classes, rows.group_totals, rows.mean_weight
        mass = rows.evaluate(splits, classes, IDENTITY, steepness).mass
        shares = smoothed_shares(mass, *known)
        for _ in range(EXPECTATION_STEPS):
            slope = rows.evaluate(splits, shares, LOGARITHM, steepness).table
            shares = smoothed_shares(-shares * slope, *known)
        return shares


def with_strengths(problem: TrainingProblem, local: float, global_: float) -> TrainingProblem:
    """Return the problem with other strengths of its local and its global penalty."""
    return problem.with_penalties(problem.penalties.with_strengths(local, global_))


def prepare(
    settings: ModelSettings, rows: TrainingRows, known: EngineRows | None = None
) -> Prepared:
    """Scale the rows and return the training problem.

    ``known`` are the scaled rows behind their engine, if they were prepared before. Raises
    ValueError, in one sentence, for a setting that is out of range.
    """
    n_classes = len(rows.classes)
    formulation = formulation_of(settings.loss)
    settings = formulation.resolved(settings, n_classes)
    kind = parse.make_scale(settings.scale)
    if rows.monotone is not None:
        refuse_beside_monotone(settings, rows)
    placed = known or rows.placed(kind, settings)
    engine, topology = placed.engine, parse.make_topology(settings.depth, n_classes)
    required = rows.monotone is not None or placed.rate_limits is not None
    if required and not formulation.prunes and not isinstance(engine, InMemory | SparseRows):
        raise ValueError(
            "monotone, fairness and constraints with loss='cost' need the rows in the memory of "
            "this process; set loss='log', or leave device, engine and Dask out."
        )
    wide = engine if isinstance(engine, SparseRows) else None
    if not isinstance(settings.engine, str):
        check_engine(engine if wide is None else wide.block, topology.n_branches)
    groups = rows.groups if wide is None else wide.groups
    n_columns = engine.n_features if wide is None else wide.table.n_columns
    if rows.within is not None:
        n_columns = rows.within.n_columns
    totals = engine.group_totals
    row_unit = min(1.0, engine.mean_weight)  # TrainingProblem.row_unit
    loss = formulation.loss(settings, Classes(rows.classes, totals), row_unit)
    if not isinstance(settings.loss, str):
        check_loss(loss, n_classes, topology.n_leaves)
    settings = formulation.with_strengths(
        settings,
        loss.featureless(totals),
        float(totals.sum()) / row_unit,
        n_columns,
        row_unit,
    )
    penalties = parse.make_penalties(
        settings.penalty,
        settings.local_strength,
        settings.global_strength,
        sharpness=settings.sharpness,
        exponent=settings.exponent,
        offset=settings.offset,
    )
    limits = parse.make_limits(penalties, settings)
    rules = rows.rules
    if rules is not None:  # a part of the rows may have one value where all have several
        rules = rules.varying(placed.summary.low < placed.summary.high)
        check_room(rules, limits, topology, groups)
    rates = parse.make_rates(settings.min_class_rate, rows.classes)
    units = formulation.units(settings, kind, engine.n_features, row_unit)
    bounds = formulation.bounds(engine.n_features, topology.n_branches)
    order = None
    if rows.monotone is not None:
        if formulation.prunes:
            _refuse_penalty(penalties)
        order = _monotone_order(rows.monotone, placed.scaling)
        bounds = order.bounds(bounds, strict=bounds.boxed)
    problem = TrainingProblem(
        rows=engine,
        topology=topology,
        loss=loss,
        penalties=penalties.of_groups(_priced_groups(groups, rules, engine.n_features)),
        minimum_rates=rates,
        steepness=units.steepness,
        bounds=bounds,
        ridge=units.ridge,
        limits=limits,
        rules=rules,
        order=order,
        rate_limits=placed.rate_limits,
    )
    if order is not None and isinstance(loss.leaf_rule, ClassAssignment):
        problem = ordered_structures(problem, order)[0]
    return Prepared(
        settings,
        rows.classes,
        placed.names(rows.names),
        placed.scaling,
        problem,
        placed.summary,
        rows.coding if placed.coding is None else placed.coding,
        rows.target,
        placed.class_factors,
        placed.labelled,
        rules,
        rows.monotone,
    )


def _priced_groups(
    groups: NDArray[np.intp] | None, rules: FeatureRules | None, n_features: int
) -> Groups | None:
    """Return the groups of features with their prices; None if there are neither."""
    prices = None if rules is None else rules.prices(groups)
    if prices is None:
        return None if groups is None else Groups(groups)
    return Groups(np.arange(n_features) if groups is None else groups, prices)


def _monotone_order(effects: MonotoneEffects, scaling: Scaling) -> MonotoneOrder:
    """Return the effects in terms of the columns of a problem."""
    units = scaling.span if isinstance(scaling, LinearScaling) else np.ones(scaling.n_features)
    return MonotoneOrder(
        tuple(np.array(columns, dtype=np.intp) for columns in effects.columns),
        tuple(sign for _, sign in effects.signs),
        np.where(np.isfinite(units), units, 1.0),
        np.array(effects.levels, dtype=np.intp),
    )


def ordered_structures(problem: TrainingProblem, order: MonotoneOrder) -> list[TrainingProblem]:
    """Return problems with the classes on fixed leaves, in order of their levels.

    Every class has a leaf. In the first problem the others go where most rows for each leaf are,
    and classes of one level stand as they come; the next ones have them otherwise.
    """
    totals, n_leaves = problem.rows.group_totals, problem.topology.n_leaves
    neutral = TreeParameters.neutral(problem.n_features, len(totals), problem.topology)
    whole = Block(tuple(range(problem.topology.n_branches)), ())
    counts = np.ones(len(totals), dtype=int)
    for _ in range(n_leaves - len(totals)):
        counts[int(np.argmax(totals / counts))] += 1
    shapes = [counts]
    for giver, taker in permutations(range(len(totals)), 2):
        if counts[giver] > 1:
            shapes.append(counts.copy())
            shapes[-1][[giver, taker]] += (-1, 1)
    members = [np.flatnonzero(order.levels == level) for level in np.unique(order.levels)]
    ways = list(islice(product(*(permutations(own.tolist()) for own in members)), STRUCTURES))
    pairs = sorted(product(range(len(ways)), range(len(shapes))), key=sum)[:STRUCTURES]
    problems = []
    for way, shape in pairs:
        classes = np.array([k for own in ways[way] for k in own])
        leaves = np.eye(len(totals))[:, np.repeat(classes, shapes[shape][classes])]
        problems.append(problem.restrict(whole, replace(neutral, leaf_values=leaves)))
    return problems


def refuse_beside_monotone(settings: ModelSettings, rows: TrainingRows) -> None:
    """Raise ValueError, in one sentence, for what does not go together with monotone effects."""
    if not isinstance(settings.loss, str):
        raise ValueError(
            "monotone is for loss='log' and loss='cost'; leave it out for other losses."
        )
    if isinstance(rows, Rows) and not rows.dense:
        raise ValueError(
            "monotone is for tables and dense matrices; make X dense, or leave monotone out."
        )


def _refuse_penalty(penalties: PenaltyPair) -> None:
    """Raise ValueError for a penalty under which no tree is led in the coordinates of an order."""
    strength = penalties.local.strength + penalties.global_.strength
    if strength > 0 and not penalties.counts:
        raise ValueError(
            "monotone with loss='log' needs penalty='count' or no penalty at all; leave penalty "
            "at 'auto'."
        )
