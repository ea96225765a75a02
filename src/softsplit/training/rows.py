"""Training rows: in memory or elsewhere, checked once; folds and samples are parts of them.

``Rows`` holds the coded matrix with labels and weights, and what was asked of its columns;
``placed`` scales it and hands it to an engine, which gives ``EngineRows``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from softsplit.engines.base import RowEngine
from softsplit.engines.compiled import CompiledRows
from softsplit.engines.registry import arrived, make_engine, make_samples
from softsplit.engines.samples import Samples
from softsplit.fitted.summary import FeatureSummary
from softsplit.formulations import formulation_of
from softsplit.formulations import settings as parse
from softsplit.formulations.model_settings import ModelSettings
from softsplit.formulations.rates import RatedRows
from softsplit.problem.feature_rules import FeatureRules
from softsplit.problem.rates import RateLimits
from softsplit.support.arrays import FloatArray
from softsplit.support.hinged_table import HingedTable
from softsplit.support.inputs import on_host
from softsplit.support.row_budgets import ROWS
from softsplit.tree.scaling import Scaling, fit_scaling
from softsplit.variables import (
    Coding,
    MonotoneEffects,
    Shared,
    column_groups,
    recoded_columns,
)


class ColumnSubset(NamedTuple):
    """A working set of columns, in ascending order, among ``n_columns`` of a table."""

    columns: NDArray[np.intp]
    n_columns: int


@dataclass(frozen=True)
class EngineRows:
    """Scaled rows behind an engine, with their scaling and a summary of the features.

    Where the engine has a working set of a wider table, ``coding`` takes its columns from there.
    ``class_factors`` (n_classes,) are those that class weights put on the weights of the rows.
    ``labelled`` are the rows with their labels, where the engine has class probabilities instead.
    ``rate_limits`` are the requirements on rates, with the rows in cells.
    """

    scaling: Scaling
    engine: RowEngine
    summary: FeatureSummary
    coding: Coding | None = None
    class_factors: FloatArray | None = None
    labelled: Samples | None = None
    rate_limits: RateLimits | None = None

    def names(self, known: NDArray[Any] | None) -> NDArray[Any] | None:
        """The names of the columns: those of the coding, or the ones ``known`` of the rows."""
        return known if self.coding is None else np.array(self.coding.column_names, dtype=object)


class TrainingRows(Protocol):
    """Protocol of rows that a problem is made of: ``Rows``, or rows of another process."""

    @property
    def classes(self) -> NDArray[Any]:
        """The classes in order."""

    @property
    def names(self) -> NDArray[Any] | None:
        """As of ``Rows``, and so are the next five."""

    @property
    def coding(self) -> Coding | None: ...

    @property
    def target(self) -> str | None: ...

    @property
    def groups(self) -> NDArray[np.intp] | None: ...

    @property
    def within(self) -> ColumnSubset | None: ...

    @property
    def rules(self) -> FeatureRules | None: ...

    @property
    def monotone(self) -> MonotoneEffects | None: ...

    def placed(self, kind: str, settings: ModelSettings) -> EngineRows:
        """Return the rows, scaled, behind an engine; class weights may be factors on theirs."""


@dataclass(frozen=True)
class Rows:
    """Validated training rows in this process.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        For many rows with hinges a ``HingedTable``, which supports the same indexing; parts of it
        are ordinary arrays.
    labels : array of int, shape (n_rows,)
        Positions in ``classes``; undefined for rows of weight zero.
    weight : array of shape (n_rows,)
    classes : array of shape (n_classes,)
    names : array of str, optional
        Names of the columns, if X had any.
    weighted : bool
        Whether the user gave weights.
    coding : Coding, optional
        How X was coded from a table, if it was; ``names`` are then those of the coded columns.
    target : str, optional
        Name of y, if it had one.
    groups : array of int, shape (n_features,), optional
        Group of each feature; features of a group are selected together.
    shared : tuple of Shared
        Categories coded by class shares, which each fold learns from its own training rows.
    within : ColumnSubset, optional
        Which columns of a wider table these are, if they are a working set (wide.py).
    bends : bool
        Whether numbers have hinges where they have values enough (``curves``).
    targets : array of shape (n_rows, n_classes), optional
        Class probabilities that a tree is trained on, instead of the labels; rows sum to 1.
    rules : FeatureRules, optional
        Variables that must be in the tree, or not together, and what they cost.
    monotone : MonotoneEffects, optional
        Effects whose sign the tree must have.
    rated : RatedRows, optional
        Cells of the rows and the requirements on rates there.
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
    within: ColumnSubset | None = None
    bends: bool = False
    targets: FloatArray | None = None
    rules: FeatureRules | None = None
    monotone: MonotoneEffects | None = None
    rated: RatedRows | None = None

    @property
    def y(self) -> NDArray[Any]:
        """Class label of each row."""
        return self.classes[self.labels]

    @property
    def dense(self) -> bool:
        """Whether the rows are neither sparse nor elsewhere."""
        return isinstance(self.X, np.ndarray | HingedTable)

    def part(self, rows: NDArray[Any]) -> Self:
        """Return some of the rows, by position or by a boolean mask."""
        return replace(
            self,
            X=self.X[rows],
            labels=self.labels[rows],
            weight=self.weight[rows],
            shared=tuple(one.part(rows) for one in self.shared),
            targets=None if self.targets is None else self.targets[rows],
            rated=None if self.rated is None else self.rated.part(rows),
        )

    def many(self, rows: NDArray[np.intp]) -> Self:
        """Return some of the rows, as ``part`` does; of a ``HingedTable`` many remain one."""
        table = self.X
        if not isinstance(table, HingedTable) or ROWS.holds_hinges(len(rows), table.shape[1]):
            return self.part(rows)
        others = replace(self, X=table.values[:, :0]).part(rows)
        return replace(others, X=table.part(rows))

    def taught(self, targets: FloatArray) -> Self:
        """Return the rows with class probabilities (n_rows, n_classes) as targets."""
        return replace(self, targets=targets)

    def paired(self) -> Self:
        """Return an entry for each row and class of positive probability, which its weight is
        multiplied with: the log-loss of the entries is -sum_i weight_i sum_k target_ik log p_ik."""
        if self.targets is None:
            return self
        rows, classes = np.nonzero(self.targets > 0)
        return replace(
            self,
            X=self.X[rows],
            labels=classes.astype(np.int64),
            weight=self.weight[rows] * self.targets[rows, classes],
            shared=(),
            targets=None,
            rated=None,
        )

    def fold(self, train: NDArray[Any], test: NDArray[Any]) -> tuple[Rows, Rows]:
        """Return training and test rows of a fold, with class shares of the training rows."""
        positions = np.arange(len(self.labels))
        own, other, X = self.many(positions[train]), self.part(test), self.X
        for mine, theirs in zip(own.shared, other.shared, strict=True):
            places = np.arange(X.shape[1])[mine.columns]
            values: Any = own.X
            if isinstance(values, HingedTable):
                values, places = values.values, values.homes[places]
            values[:, places] = mine.held_out(own.labels, own.weight)
            other.X[:, mine.columns] = mine.table(own.labels, own.weight)[theirs.places]
        return own, other

    def nameless(self) -> Self:
        """Return the rows without column names, as scorers on folds receive them."""
        return replace(self, names=None, coding=None)

    def recoded(self, coding: Coding, levels: Coding) -> Self:
        """Return the rows of ``coding`` with ``levels`` in place of some numbers.

        Columns of a variable are a group.
        """
        firsts = dict(zip(coding.firsts, levels.firsts, strict=True))
        return replace(
            self,
            X=recoded_columns(coding, levels, self.X),
            names=np.array(levels.column_names, dtype=object),
            coding=levels,
            groups=column_groups(levels, levels.names, None),
            shared=tuple(replace(one, first=firsts[one.first]) for one in self.shared),
        )

    @property
    def costly_folds(self) -> bool:
        """Whether making the rows of a fold takes work."""
        return bool(self.shared)

    @property
    def content(self) -> FloatArray:
        """The cells by which rows are put in canonical order."""
        return self.X

    @property
    def two_valued(self) -> bool:
        """Whether every column has at most two distinct values."""
        return bool(np.all((self.X.min(axis=0) == self.X) | (self.X.max(axis=0) == self.X)))

    def counted(self) -> Self:
        """Return the rows of positive weight."""
        counted = self.weight > 0
        if np.all(counted):
            return self
        return self.many(np.flatnonzero(counted))

    def present(self) -> NDArray[np.bool_]:
        """Whether each class has a row of positive weight, (n_classes,)."""
        present = np.zeros(len(self.classes), dtype=bool)
        present[self.labels[self.weight > 0]] = True
        return present

    def of_classes(self, present: NDArray[np.bool_]) -> Self:
        """Return the rows with labels among the classes that are present."""
        labels, targets = np.maximum(np.cumsum(present)[self.labels] - 1, 0), self.targets
        if targets is not None:
            targets = targets[:, present] / targets[:, present].sum(axis=1, keepdims=True)
        effects = None if self.monotone is None else self.monotone.of_classes(present)
        rated = None if self.rated is None else self.rated.of_classes(present)
        return replace(
            self,
            labels=labels,
            classes=self.classes[present],
            targets=targets,
            monotone=effects,
            rated=rated,
        )

    def training_weight(self, settings: ModelSettings) -> FloatArray:
        """The weights of the rows, times class weights where these are factors on them."""
        given = settings.class_weight
        if given is None or not formulation_of(settings.loss).weights_rows:
            return self.weight
        return parse.weighted_rows(given, self.weight, self.labels, self.classes)

    def class_factors(self, settings: ModelSettings) -> FloatArray | None:
        """Factors of class weights in ``training_weight``; None if there are none."""
        given = settings.class_weight
        if given is None or not formulation_of(settings.loss).weights_rows:
            return None
        totals = np.bincount(self.labels, self.weight, len(self.classes)).astype(float)
        return parse.class_factors(given, totals, self.classes)

    def placed(self, kind: str, settings: ModelSettings) -> EngineRows:
        """As of ``TrainingRows``."""
        whole, formulation = self.counted(), formulation_of(settings.loss)
        rows, n_classes = whole.paired(), len(whole.classes)
        weight, factors = rows.training_weight(settings), rows.class_factors(settings)
        table = vars(rows).get("tensor", None)
        table = rows.X if table is None else table
        # first-order conditions of requirements need more digits than single precision has
        required = whole.rated is not None or whole.monotone is not None
        exact = required and settings.device is not None
        single = str(table.dtype).endswith("float32")
        make = make_engine(settings.engine, settings.device, single=single and not exact)
        if (formulation.keeps_single or not single) and not exact:
            there = arrived(
                table, rows.labels, n_classes, weight, kind,
                device=settings.device, counts=rows.weight,
            )  # fmt: skip
            if there is not None:
                ends = there.low, there.high, there.scaled_mean, there.whole
                summary = FeatureSummary.known(*ends)
                return EngineRows(there.scaling, there.rows, summary, class_factors=factors)
        scaling = fit_scaling(kind, whole.X, whole.weight)
        samples = make_samples(
            rows.X, rows.labels, n_classes, weight, scaling, device=settings.device,
            stay_single=formulation.keeps_single and not exact, hinged=make is CompiledRows,
        )  # fmt: skip
        summary, labelled = FeatureSummary.of(whole.X, whole.weight, samples.mean), None
        if rows is not whole:
            samples = replace(samples, per_row=len(rows.labels) / len(whole.labels))
            known = whole.labels, n_classes, whole.training_weight(settings)
            labelled = Samples.from_arrays(np.asarray(whole.X), *known, scaling.transform)

        def by_cells(cells: NDArray[np.intp], n_cells: int) -> RowEngine:
            known = cells.astype(np.int64), n_cells, whole.weight, scaling
            return make(make_samples(whole.X, *known, device=settings.device))

        limits = None if whole.rated is None else whole.rated.limits(n_classes, by_cells)
        return EngineRows(
            scaling, make(samples), summary,
            class_factors=factors, labelled=labelled, rate_limits=limits,
        )  # fmt: skip


class TensorRows(Rows):
    """Rows of a tensor, perhaps on a device; ``X`` copies them to this process when first used."""

    tensor: Any

    @classmethod
    def of(cls, X: Any, **facts: Any) -> TensorRows:
        """Make rows from the tensor ``X`` and the other fields of ``Rows``."""
        rows = cls(X=X, **facts)
        vars(rows)["tensor"] = vars(rows).pop("X")
        return rows

    @cached_property
    def X(self) -> Any:  # noqa: N802
        return np.ascontiguousarray(on_host(self.tensor))
