"""A training problem made of validated rows and the parameters of a model, by one pure function.

    prepare(settings, rows) -> Prepared

``Rows`` are checked once, by an estimator; folds and samples are parts of them. Nothing in here is
ever changed: other strengths or other classes make new objects.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import RowEngine
from softsplit.engines.outer import IDENTITY, LOGARITHM
from softsplit.engines.registry import arrived, check_engine, make_engine, make_samples
from softsplit.formulations import formulation_of
from softsplit.formulations import settings as parse
from softsplit.formulations.model_settings import ModelSettings
from softsplit.problem.leaves import ClassAssignment
from softsplit.problem.loss import check_loss
from softsplit.problem.penalties import Groups
from softsplit.problem.problem import TrainingProblem
from softsplit.reading.importance import feature_importances
from softsplit.reading.leaf_shares import EXPECTATION_STEPS, smoothed_shares
from softsplit.reading.model import TreeModel, used_shares
from softsplit.reading.pruning import simplified
from softsplit.reading.summary import FeatureSummary
from softsplit.solvers.base import Solution
from softsplit.support.arrays import FloatArray
from softsplit.support.inputs import on_host
from softsplit.support.row_budgets import ROWS
from softsplit.tree.parameters import TreeParameters
from softsplit.tree.scaling import Scaling, fit_scaling
from softsplit.variables import Coding, Shared

IDLE = 1e-12
"""Branches without which no class probability changes by more are left out."""


class Within(NamedTuple):
    """Columns that were chosen, in ascending order, among ``n_columns`` of a table."""

    columns: NDArray[np.intp]
    n_columns: int


@dataclass(frozen=True)
class Placed:
    """Rows behind an engine, with the scaling that they have there and a summary of them."""

    scaling: Scaling
    engine: RowEngine
    summary: FeatureSummary


class TrainingRows(Protocol):
    """What a problem is made of: ``Rows``, or rows that are not in this process."""

    @property
    def classes(self) -> NDArray[Any]:
        """The classes in order."""

    @property
    def names(self) -> NDArray[Any] | None:
        """As of ``Rows``, and so are the next four."""

    @property
    def coding(self) -> Coding | None: ...

    @property
    def target(self) -> str | None: ...

    @property
    def groups(self) -> NDArray[np.intp] | None: ...

    @property
    def within(self) -> Within | None: ...

    def placed(self, kind: str, settings: ModelSettings) -> Placed:
        """Return the rows, scaled, behind an engine; class weights may be factors on theirs."""


@dataclass(frozen=True)
class Rows:
    """Validated training rows in this process.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
    labels : array of int, shape (n_rows,)
        Positions in ``classes``; of no meaning for rows of weight zero.
    weight : array of shape (n_rows,)
    classes : array of shape (n_classes,)
    names : array of str, optional
        Names of the columns, if X had any.
    weighted : bool
        Whether the user gave weights.
    coding : Coding, optional
        How X was made of a table, if it was; ``names`` are those of the coded columns then.
    target : str, optional
        What the labels are called, if y had a name.
    groups : array of int, shape (n_features,), optional
        The group of each feature: those of a group are selected together.
    shared : tuple of Shared
        Categories of the table that are coded by class shares, which folds learn anew.
    within : Within, optional
        Which columns these are, where they were chosen among more of them (wide.py).
    """

    X: FloatArray
    labels: NDArray[np.int64]
    weight: FloatArray
    classes: NDArray[Any]
    names: NDArray[Any] | None = None
    weighted: bool = False
    coding: Coding | None = None
    target: str | None = None
    groups: NDArray[np.intp] | None = None
    shared: tuple[Shared, ...] = ()
    within: Within | None = None

    @property
    def y(self) -> NDArray[Any]:
        """The class of each row by its name."""
        named: NDArray[Any] = self.classes[self.labels]
        return named

    def part(self, rows: NDArray[Any]) -> Rows:
        """Some of the rows, by their positions or by flags."""
        return replace(
            self,
            X=self.X[rows],
            labels=self.labels[rows],
            weight=self.weight[rows],
            shared=tuple(one.part(rows) for one in self.shared),
        )

    def fold(self, train: NDArray[Any], test: NDArray[Any]) -> tuple[Rows, Rows]:
        """Rows to train on and rows to test on, both coded by what the first of them tell."""
        own, other = self.part(train), self.part(test)
        for mine, theirs in zip(own.shared, other.shared, strict=True):
            own.X[:, mine.columns] = mine.held_out(own.labels, own.weight)
            other.X[:, mine.columns] = mine.table(own.labels, own.weight)[theirs.places]
        return own, other

    def nameless(self) -> Rows:
        """The same rows as plain numbers: what scorers on folds get."""
        return replace(self, names=None, coding=None)

    @property
    def content(self) -> FloatArray:
        """What tells rows apart, for their canonical order."""
        return self.X

    @property
    def two_valued(self) -> bool:
        """Whether no column has three different values."""
        return bool(np.all((self.X.min(axis=0) == self.X) | (self.X.max(axis=0) == self.X)))

    def counted(self) -> Rows:
        """The rows of positive weight."""
        counted = self.weight > 0
        return self if np.all(counted) else self.part(counted)

    def present(self) -> NDArray[np.bool_]:
        """Whether each class has a row of positive weight, (n_classes,)."""
        present = np.zeros(len(self.classes), dtype=bool)
        present[self.labels[self.weight > 0]] = True
        return present

    def of_classes(self, present: NDArray[np.bool_]) -> Rows:
        """The same rows, where only some of the classes can be learned."""
        labels = np.maximum(np.cumsum(present)[self.labels] - 1, 0)
        return replace(self, labels=labels, classes=self.classes[present])

    def placed(self, kind: str, settings: ModelSettings) -> Placed:
        """As of ``TrainingRows``."""
        rows, given = self.counted(), settings.class_weight
        formulation = formulation_of(settings.loss)
        weight, n_classes = rows.weight, len(rows.classes)
        if formulation.weights_rows and given is not None:
            weight = parse.weighted_rows(given, weight, rows.labels, rows.classes)
        table = vars(rows).get("tensor", None)
        table = rows.X if table is None else table
        single = str(table.dtype).endswith("float32")
        make = make_engine(settings.engine, settings.device, single=single)
        if formulation.keeps_single or not single:
            there = arrived(
                table, rows.labels, n_classes, weight, kind,
                device=settings.device, counts=rows.weight,
            )  # fmt: skip
            if there is not None:
                ends = there.low, there.high, there.scaled_mean, there.whole
                return Placed(there.scaling, there.rows, FeatureSummary.known(*ends))
        scaling = fit_scaling(kind, rows.X, rows.weight)
        samples = make_samples(
            rows.X, rows.labels, n_classes, weight, scaling,
            device=settings.device, stay_single=formulation.keeps_single,
        )  # fmt: skip
        summary = FeatureSummary.of(rows.X, rows.weight, samples.mean)
        return Placed(scaling, make(samples), summary)


class RowsThere(Rows):
    """Rows of a tensor, perhaps on a device: they come here when they are asked for as an array."""

    tensor: Any

    @classmethod
    def of(cls, tensor: Any, *facts: Any) -> RowsThere:
        """From a tensor, and what ``Rows`` are made of after X, in that order."""
        made = cls.__new__(cls)
        names = [field.name for field in fields(Rows)[1:]]
        vars(made).update(zip(names, facts, strict=False), tensor=tensor)
        return made

    @cached_property
    def X(self) -> Any:  # noqa: N802
        return np.ascontiguousarray(on_host(self.tensor))


@dataclass(frozen=True)
class Prepared:
    """A training problem, with all that turns its solution into a tree for rows of X.

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
    """

    settings: ModelSettings
    classes: NDArray[Any]
    names: NDArray[Any] | None
    scaling: Scaling
    problem: TrainingProblem
    summary: FeatureSummary
    coding: Coding | None = None
    target: str | None = None

    @property
    def named(self) -> bool:
        """Whether the columns of X had names."""
        return self.names is not None if self.coding is None else self.coding.named

    @property
    def placed(self) -> Placed:
        """The rows in their place, for problems that differ in their trees alone."""
        return Placed(self.scaling, self.problem.rows, self.summary)

    @property
    def n_rows(self) -> int:
        """Different rows of positive weight: those that count."""
        return self.problem.rows.n_rows

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns; x0, x1, ... if X had none."""
        if self.names is None:
            return tuple(f"x{j}" for j in range(self.problem.n_features))
        return tuple(map(str, self.names))

    def with_strengths(self, local: float, global_: float) -> Prepared:
        """The same with other strengths of the local and of the global penalty."""
        return replace(
            self,
            settings=self.settings.with_strengths(local, global_),
            problem=with_strengths(self.problem, local, global_),
        )

    def tree(
        self, solution: Solution, zero_threshold: float, *, importances: bool = True
    ) -> TreeModel:
        """The tree of a solution; the importances of its features take a pass over the rows.

        Leaves that carry classes get the class shares of the rows in them besides. Where leaves
        are distributions already, the cost matrix decides which class they predict. Where the
        formulation says so, branches without effect are removed: the tree may be less deep.
        """
        found, shares = solution.parameters, None
        if formulation_of(self.settings.loss).prunes:
            found = simplified(found, self.problem.steepness, IDLE)
        if importances:
            samples = self.problem.rows.sample(ROWS.importances)
            shares = feature_importances(
                found, self.problem.steepness, samples.features, samples.weights
            )
        assigned = isinstance(self.problem.loss.leaf_rule, ClassAssignment)
        costs = None if assigned else self.settings.cost_matrix
        return TreeModel(
            parameters=found,
            steepness=self.problem.steepness,
            scaling=self.scaling,
            classes=self.classes,
            feature_names=self.feature_names,
            summary=self.summary,
            zero_threshold=float(zero_threshold),
            importances=None if shares is None else used_shares(shares, found.weights),
            objective=solution.objective,
            n_iter=max(1, solution.n_iter),
            distributions=self._shares(found) if assigned else None,
            call_costs=None if costs is None else np.array(costs, dtype=float),
            coding=self.coding,
            target=self.target,
        )

    def _shares(self, tree: TreeParameters) -> FloatArray:
        """Class shares of the rows that reach each leaf, (n_classes, n_leaves)."""
        rows, steepness = self.problem.rows, self.problem.steepness
        splits, classes = tree.splits, tree.leaf_classes
        known = classes, rows.class_totals, rows.mean_weight
        mass = rows.evaluate(splits, classes, IDENTITY, steepness).mass
        shares = smoothed_shares(mass, *known)
        for _ in range(EXPECTATION_STEPS):
            slope = rows.evaluate(splits, shares, LOGARITHM, steepness).table
            shares = smoothed_shares(-shares * slope, *known)
        return shares


def with_strengths(problem: TrainingProblem, local: float, global_: float) -> TrainingProblem:
    """The problem with other strengths of its local and its global penalty."""
    return problem.with_penalties(problem.penalties.with_strengths(local, global_))


def prepare(settings: ModelSettings, rows: TrainingRows, known: Placed | None = None) -> Prepared:
    """Scale the rows and put the training problem together; one sentence if a setting is wrong.

    ``known`` are the rows in their place, if they were scaled before.
    """
    n_classes = len(rows.classes)
    formulation = formulation_of(settings.loss)
    settings = formulation.resolved(settings, n_classes)
    kind = parse.make_scale(settings.scale)
    placed = known or rows.placed(kind, settings)
    engine, topology = placed.engine, parse.make_topology(settings.depth, n_classes)
    if not isinstance(settings.engine, str):
        check_engine(engine, topology.n_branches)
    totals = engine.class_totals
    row_unit = min(1.0, engine.mean_weight)  # TrainingProblem.row_unit
    loss = formulation.loss(settings, rows.classes, totals, row_unit)
    if not isinstance(settings.loss, str):
        check_loss(loss, n_classes, topology.n_leaves)
    settings = formulation.with_strengths(
        settings,
        loss.featureless(totals),
        float(totals.sum()) / row_unit,
        engine.n_features if rows.within is None else rows.within.n_columns,
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
    rates = parse.make_rates(settings.min_class_rate, rows.classes)
    units = formulation.units(settings, kind, engine.n_features, row_unit)
    problem = TrainingProblem(
        rows=engine,
        topology=topology,
        loss=loss,
        penalties=penalties.of_groups(None if rows.groups is None else Groups(rows.groups)),
        minimum_rates=rates,
        steepness=units.steepness,
        bounds=formulation.bounds(engine.n_features, topology.n_branches),
        ridge=units.ridge,
    )
    return Prepared(
        settings,
        rows.classes,
        rows.names,
        placed.scaling,
        problem,
        placed.summary,
        rows.coding,
        rows.target,
    )
