"""From validated rows and the parameters of a model to a training problem.

    prepare(settings, rows) -> Prepared

An estimator checks its ``Rows`` once; folds and samples are parts of them. All objects are
immutable: other strengths or other classes make new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import drawn_from
from softsplit.engines.compiled import InMemory
from softsplit.engines.registry import check_engine
from softsplit.engines.samples import Samples
from softsplit.engines.sparse import SparseRows
from softsplit.fitted.summary import FeatureSummary
from softsplit.fitted.walk import Arriving
from softsplit.formulations import formulation_of
from softsplit.formulations import settings as parse
from softsplit.formulations.feature_rules import check_room
from softsplit.formulations.model_settings import ModelSettings
from softsplit.problem.feature_rules import FeatureRules
from softsplit.problem.leaves import ClassAssignment
from softsplit.problem.loss import check_loss
from softsplit.problem.penalties import Groups
from softsplit.problem.problem import TrainingProblem
from softsplit.problem.targets import Classes
from softsplit.solvers.base import Solution
from softsplit.solvers.elimination.working_set import moved, on_columns
from softsplit.support.arrays import FloatArray
from softsplit.training.monotone_problems import (
    monotone_order,
    ordered_structures,
    refuse_beside_monotone,
    refuse_penalty,
)
from softsplit.training.rows import ColumnSubset, EngineRows, TrainingRows
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.scaling import Scaling
from softsplit.variables import Coding, MonotoneEffects


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

    def on(self, rows: SparseRows) -> Prepared:
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
        return self.on(rows), [moved(tree, columns, rows.columns) for tree, columns in known]

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
            refuse_penalty(penalties)
        order = monotone_order(rows.monotone, placed.scaling)
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
