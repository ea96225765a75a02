"""The section "tree" of a model file: branches, leaves, the walk and monotone effects."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel
from softsplit.fitted.summary import FeatureSummary
from softsplit.fitted.walk import Walk
from softsplit.persistence.records import (
    MOST_COEFFICIENTS,
    SHARE_ERROR,
    Count,
    Number,
    Part,
    Place,
    Positive,
    Record,
    Share,
    Weight,
    below,
    require,
    sized,
    table,
)
from softsplit.support.arrays import FloatArray
from softsplit.tree.parameters import MAX_DEPTH, TreeParameters
from softsplit.tree.scaling import Scaling
from softsplit.variables import MonotoneEffects


class Branch(Record):
    """A branch: its threshold, and the features whose weights are not zero. Interior points may
    lie outside the box by their tolerance."""

    threshold: Weight
    features: list[Place]
    weights: list[Weight]


class QuestionRecord(Record):
    """A printed question; it holds where the sum is on the side of the threshold that "sign" says,
    in ranks instead of units of the data if "ranks" is true."""

    features: list[Place]
    coefficients: list[Number]
    sign: Literal[">", "<"]
    threshold: Number
    ranks: bool


class WalkRecord(Record):
    """The questions that decide the class, training rows of each class in each leaf (null where
    they are not known), and the position of the class of each leaf."""

    questions: list[QuestionRecord]
    rows: list[list[Count | None]]
    classes: list[Place]

    @classmethod
    def of(cls, walk: Walk) -> WalkRecord:
        used = [np.flatnonzero(row) for row in walk.coefficients]
        questions = [
            QuestionRecord(
                used[t].tolist(),
                walk.coefficients[t, used[t]].tolist(),
                ">" if walk.upwards[t] else "<",
                float(walk.thresholds[t]),
                bool(walk.ranked[t]),
            )
            for t in range(len(used))
        ]
        rows = [[None if np.isnan(c) else c for c in row] for row in walk.counts.T.tolist()]
        return cls(questions, rows, walk.classes.tolist())

    def read(self, n_branches: int, n_features: int, n_classes: int) -> Walk:
        where = "tree.walk"
        sized(self.questions, n_branches, f"{where}.questions")
        coefficients = np.zeros((n_branches, n_features))
        for t, question in enumerate(self.questions):
            place = f"{where}.questions[{t}]"
            sized(question.coefficients, len(question.features), f"{place}.coefficients")
            used = below(question.features, n_features, f"{place}.features")
            coefficients[t, used] = question.coefficients
        sized(self.classes, n_branches + 1, f"{where}.classes")
        return Walk(
            coefficients,
            np.array([question.threshold for question in self.questions], dtype=float),
            np.array([question.sign == ">" for question in self.questions], dtype=bool),
            np.array([question.ranks for question in self.questions], dtype=bool),
            table(self.rows, (n_branches + 1, n_classes), f"{where}.rows").T,
            np.array(below(self.classes, n_classes, f"{where}.classes"), dtype=np.intp),
        )


class EffectRecord(Record):
    """A column of the table, the sign of its effect, and the features by which it acts."""

    column: Place
    sign: Literal[-1, 1]
    features: tuple[Place, ...]


class Monotone(Record):
    """Monotone effects, the level of each class, and the columns whose effect was asked for with
    the first of two classes."""

    effects: list[EffectRecord]
    levels: tuple[Place, ...]
    turned: tuple[Place, ...] = ()

    @classmethod
    def of(cls, monotone: MonotoneEffects) -> Monotone:
        pairs = zip(monotone.signs, monotone.columns, strict=True)
        effects = [EffectRecord(place, sign, columns) for (place, sign), columns in pairs]  # type: ignore[arg-type]
        return cls(effects, monotone.levels, monotone.turned)

    def read(self, n_features: int, n_classes: int) -> MonotoneEffects:
        sized(self.levels, n_classes, "tree.monotone.levels")
        below(self.levels, n_classes, "tree.monotone.levels")
        for i, effect in enumerate(self.effects):
            below(effect.features, n_features, f"tree.monotone.effects[{i}].features")
        signs = tuple((effect.column, effect.sign) for effect in self.effects)
        columns = tuple(effect.features for effect in self.effects)
        return MonotoneEffects(signs, self.levels, columns, self.turned)


class TreeRecord(Record):
    """The tree in scaled units: branches in heap order, the class shares of each leaf from left to
    right (none where leaves predict numbers), and what decides the class. docs/model-files.md says
    how answers follow."""

    depth: Annotated[int, Meta(ge=1, le=MAX_DEPTH)]
    steepness: Positive
    zero_threshold: Part
    branches: list[Branch]
    leaves: list[list[Share]]
    distributions: list[list[Share]] | None = None
    call_costs: list[list[Count]] | None = None
    walk: WalkRecord | None = None
    monotone: Monotone | None = None

    @classmethod
    def of(cls, model: TreeModel) -> TreeRecord:
        weights, thresholds = model.parameters.weights, model.parameters.thresholds
        used = [np.flatnonzero(weights[:, t]) for t in range(weights.shape[1])]
        shares, costs = model.distributions, model.call_costs
        return cls(
            depth=model.topology.depth,
            steepness=float(model.steepness),
            zero_threshold=float(model.zero_threshold),
            branches=[
                Branch(float(thresholds[t]), used[t].tolist(), weights[used[t], t].tolist())
                for t in range(len(used))
            ],
            leaves=[] if model.numbers is not None else model.parameters.leaf_values.T.tolist(),
            distributions=None if shares is None else shares.T.tolist(),
            call_costs=None if costs is None else costs.tolist(),
            walk=None if model.walk is None else WalkRecord.of(model.walk),
            monotone=None if model.monotone is None else Monotone.of(model.monotone),
        )

    def read(
        self,
        scaling: Scaling,
        classes: NDArray[Any],
        names: tuple[str, ...],
        summary: FeatureSummary,
    ) -> TreeModel:
        """The tree, if it fits the other sections and itself."""
        n_branches, n_features, n_classes = 2**self.depth - 1, len(names), len(classes)
        require(
            n_branches * max(n_features, n_classes) <= MOST_COEFFICIENTS,
            f"the tree of the model file has {n_branches} branches and {n_features} features, "
            "more than softsplit loads.",
        )
        leaf_shape = (n_branches + 1, n_classes)
        if n_classes:
            leaves = _leaves(self.leaves, "tree.leaves", leaf_shape)
        else:  # numbers: of a walk the rows are counted as one class, effects have two ends
            sized(self.leaves, 0, "tree.leaves")
            leaves, n_classes = np.zeros((1, n_branches + 1)), 1
        shares = costs = walk = monotone = None
        if self.distributions is not None:
            shares = _leaves(self.distributions, "tree.distributions", leaf_shape)
        if self.call_costs is not None:
            costs = table(self.call_costs, (n_classes, n_classes), "tree.call_costs")
        if self.walk is not None:
            walk = self.walk.read(n_branches, n_features, n_classes)
        if self.monotone is not None:
            monotone = self.monotone.read(n_features, n_classes if len(classes) else 2)
        return TreeModel(
            parameters=TreeParameters(*self._splits(n_branches, n_features), leaves),
            steepness=self.steepness,
            scaling=scaling,
            classes=classes,
            feature_names=names,
            summary=summary,
            zero_threshold=self.zero_threshold,
            distributions=shares,
            call_costs=costs,
            walk=walk,
            monotone=monotone,
        )

    def _splits(self, n_branches: int, n_features: int) -> tuple[FloatArray, FloatArray]:
        """Weights (n_features, n_branches) and thresholds (n_branches,)."""
        sized(self.branches, n_branches, "tree.branches")
        weights = np.zeros((n_features, n_branches))
        for t, branch in enumerate(self.branches):
            where = f"tree.branches[{t}]"
            used = below(branch.features, n_features, f"{where}.features")
            require(
                len(set(used)) == len(used),
                f"{where}.features of the model file names a feature twice.",
            )
            sized(branch.weights, len(used), f"{where}.weights")
            weights[used, t] = branch.weights
        return weights, np.array([branch.threshold for branch in self.branches], dtype=float)


def _leaves(leaves: list[list[float]], where: str, shape: tuple[int, int]) -> FloatArray:
    """Class shares, (n_classes, n_leaves), from a list for each leaf."""
    shares = table(leaves, shape, where)
    for i, total in enumerate(shares.sum(axis=1)):
        require(
            abs(total - 1) <= SHARE_ERROR,
            f"the class shares of {where}[{i}] of the model file do not add up to one.",
        )
    return shares.T
