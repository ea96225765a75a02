"""The base class of formulations, and the rules by which one of them chooses a tree.

A formulation answers every question that depends on the loss: what "auto" stands for, which loss,
bounds and units a training problem has, which solver fits it, and which settings a
cross-validation compares. No other module asks which loss a problem has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.formulations.model_settings import ModelSettings
from softsplit.problem.bounds import Bounds
from softsplit.problem.loss import Loss
from softsplit.problem.penalties import Groups
from softsplit.problem.size_limits import terms_of
from softsplit.problem.targets import Targets
from softsplit.settings.checks import is_auto
from softsplit.solvers.base import Solver
from softsplit.support.arguments import one_of, positive_number


class ProblemUnits(NamedTuple):
    """Numbers of a training problem that follow from the formulation.

    ``steepness`` is the slope of the gates per scaled unit, ``ridge`` the factor of half the
    squared weights.
    """

    steepness: float
    ridge: float


@dataclass(frozen=True)
class ChoiceRules:
    """How settings are chosen by cross-validation.

    Attributes
    ----------
    axes : dict
        Values that "auto" stands for, by setting: scales, penalties, scopes, steepnesses, ridges.
    n_strengths : int
        Length of the default grid of strengths.
    rows_per_leaf : int
        Default trees deeper than one level more than the classes need keep at least this many rows
        per leaf, on average.
    most_coefficients : float
        With more than ``RowBudgets.halved`` rows such trees have no more coefficients than this
        before elimination: time goes with their number, and a level doubles it.
    leaf_per_class : bool
        Whether a tree needs a leaf for every class.
    varied : tuple of str
        Settings that are varied one after the other after the depth.
    finalists : int
        Most candidates that are judged at all strengths.
    scores_rows : bool
        Whether held-out rows are scored one by one by default, instead of folds. Then variants of a
        setting are judged one after the other, each on the first folds only while it is clearly
        behind; scaled folds are kept for candidates that come back; and candidates may be compared
        on a random sample of the rows.
    path_iterations : int or None
        Iterations of one descent where trees are only compared; None where the solver knows.
    start_factor : int
        Factor on the number of starts where none ends in a feasible tree; 1 for no second try.
    compared_cells : int
        Cells of a dense table, without those of hinges, on which settings are compared.
    bent_scales : tuple of str
        Values that "auto" stands for as scales where effects may bend.
    readable_terms : int or None
        Terms of a question that is read at a glance: each further term counts as a feature.
    """

    axes: Mapping[str, Sequence[Any]]
    n_strengths: int
    rows_per_leaf: int
    most_coefficients: float
    leaf_per_class: bool
    varied: tuple[str, ...]
    finalists: int
    scores_rows: bool
    path_iterations: int | None
    start_factor: int
    compared_cells: int
    bent_scales: tuple[str, ...]
    readable_terms: int | None

    def long_terms(self, used: NDArray[np.bool_], groups: Groups | None) -> float:
        """Terms beyond the first ``readable_terms`` of each question.

        ``used`` (n_features, n_branches) says which weights are not zero.
        """
        if self.readable_terms is None:
            return 0.0
        return float(np.maximum(terms_of(used, groups) - self.readable_terms, 0).sum())


class Formulation(ABC):
    """What is minimised, in which units, by which solver, and how settings are chosen.

    Attributes
    ----------
    defaults : dict
        What "auto" stands for, by parameter of the estimator.
    decisions : tuple of str
        How trees may predict: by the walk, by the mixture of their leaves.
    choice : ChoiceRules
    weights_rows : bool
        Whether class weights are factors on the weights of rows; they are part of the costs else.
    keeps_single : bool
        Whether rows of single precision are trained on as they are.
    trains_sparse : bool
        Whether wide sparse matrices are trained on without a dense copy.
    prunes : bool
        Whether branches without effect are removed from the fitted tree.
    strength_growth : float
        Strengths that were chosen on some rows grow with their number to this power.
    """

    defaults: ClassVar[Mapping[str, Any]]
    decisions: ClassVar[tuple[str, ...]]
    choice: ClassVar[ChoiceRules]
    weights_rows: ClassVar[bool]
    keeps_single: ClassVar[bool]
    trains_sparse: ClassVar[bool]
    prunes: ClassVar[bool]
    strength_growth: ClassVar[float]

    @abstractmethod
    def solver(self) -> Solver:
        """Return the solver that ``solver="native"`` names."""

    @abstractmethod
    def loss(self, settings: ModelSettings, targets: Targets, row_unit: float) -> Loss:
        """Return the loss for rows with these targets.

        ``row_unit`` is the weight that counts as one row.
        """

    @abstractmethod
    def units(
        self, settings: ModelSettings, scale: str, n_features: int, row_unit: float
    ) -> ProblemUnits:
        """Return steepness and ridge of a problem of scaled rows."""

    @abstractmethod
    def bounds(self, n_features: int, n_branches: int) -> Bounds:
        """Return the bounds of weights and thresholds."""

    def resolved(self, settings: ModelSettings, n_classes: int) -> ModelSettings:
        """Return the settings with every "auto" replaced but strengths, which need a problem."""
        self.check_steepness("steepness", settings.steepness)
        wanted = one_of("decision", settings.decision, ("auto", "walk", "mixture"))
        if wanted == "walk" and "walk" not in self.decisions:
            raise ValueError(
                "decision='walk' needs leaves with class probabilities, which only "
                "loss='log' trains; leave decision out."
            )
        autos = {n: v for n, v in self.defaults.items() if is_auto(getattr(settings, n))}
        return replace(settings, depth=self.depth(settings.depth, n_classes), **autos)

    def depth(self, depth: Any, n_classes: int) -> Any:
        """Return the depth; one that stays "auto" is the least with a leaf for every class."""
        return depth

    def n_knots(self, n_rows: float, n_columns: int) -> int:
        """Return the number of knots at which numbers bend by default in a table of this shape."""
        return 0

    def default_penalty(self, penalty: Any, solver: Any) -> Any:
        """Return the penalty for a solver, where it depends on the solver what "auto" means."""
        return penalty

    @abstractmethod
    def with_strengths(
        self, settings: ModelSettings, loss: float, n_rows: float, n_features: int, unit: float
    ) -> ModelSettings:
        """Return the settings with numbers for strengths that are "auto".

        ``loss`` is that of the best tree without features, ``unit`` the weight of one of
        ``n_rows``.
        """

    @abstractmethod
    def fractions(self, count: int | None, loss: float) -> tuple[float, ...]:
        """Return a grid of strengths as fractions of their unit, in ascending order.

        ``count`` is its length, or None for the default one, which may depend on ``loss``, the
        unit on the rows that candidates are compared on.
        """

    def on_more_rows(self, fraction: float, n_compared: int, n_rows: int) -> float:
        """Return the fraction for ``n_rows``, as it was chosen on ``n_compared`` of them.

        The unit of a fraction grows as the rows do; the strength may grow less.
        """
        return fraction * min(1.0, n_compared / max(n_rows, 1)) ** (1.0 - self.strength_growth)

    def check_steepness(self, name: str, value: Any) -> Any:
        """Return a steepness, checked, or "auto"; raise ValueError in a sentence with ``name``."""
        return value

    def label(self, steepness: Any, ridge: float) -> str:
        """The setting that only this formulation has, in words."""
        return f"steepness {steepness:g}"

    @property
    def tunes_ridge(self) -> bool:
        """Whether the ridge is one of the settings that are chosen."""
        return "ridge" in self.choice.varied

    @property
    def decides_by_cost(self) -> bool:
        """Whether a cost matrix is applied at prediction, to probabilities."""
        return self.weights_rows


# Strength of a coefficient under "count", as a part of that of a feature.
LOCAL_PART = 0.25

# Ends of a grid of fractions: from a tree that is hardly penalised to one or two features.
SLOPE_FRACTIONS = (0.002, 0.25)

# The same under "count", which shrinks nothing.
COUNT_FRACTIONS = (0.0008, 0.3)


def default_local_strength(settings: ModelSettings, global_strength: Any) -> Any:
    """Return the local strength, where it is "auto": a part of the global one under "count"."""
    if not is_auto(settings.local_strength):
        return settings.local_strength
    counts = isinstance(settings.penalty, str) and settings.penalty == "count"
    known = positive_number("global_strength", global_strength, zero=True)
    return LOCAL_PART * known if counts else 0.0


def fraction_grid(
    count: int, ends: tuple[float, float], smallest: float = np.inf
) -> tuple[float, ...]:
    """Return ``count`` fractions in geometric progression; the first is at most ``smallest``."""
    return tuple(np.geomspace(min(smallest, ends[0]), ends[1], count).tolist())
