"""From the estimator's parameters to the parts of a training problem, or one clear sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softsplit.formulations.model_settings import ModelSettings
from softsplit.problem.penalties import BY_NAME, PenaltyPair, linear
from softsplit.problem.size_limits import SizeLimits
from softsplit.settings.checks import is_auto
from softsplit.solvers import Solver, registry
from softsplit.support.arguments import is_integer, positive_integer, positive_number
from softsplit.support.arrays import FloatArray
from softsplit.support.inputs import refuse_masked
from softsplit.support.messages import ParameterError, nearest, shown, unfit
from softsplit.tree.parameters import MAX_DEPTH, Topology

# Ends of the products of weights and costs that floats can compute with.
SMALLEST_WEIGHT, LARGEST_WEIGHT = 1e-150, 1e150

# Below the first every gate is a coin; above the second gates are steps that no float resolves.
SMALLEST_STEEPNESS, LARGEST_STEEPNESS = 1e-9, 1e12

# Parameters that limit the size of a tree.
SIZE_LIMITS = tuple(f"max_{one.name}" for one in fields(SizeLimits))

# Class probabilities of a row may miss the sum 1 by this: single precision does.
PROBABILITY_SLACK = 1e-4

# Classes that an error lists.
MOST_LISTED = 6

# Scalings by the names of the estimator.
SCALES = {
    "minmax": "minmax",
    "quantile": "quantile",
    "standard": "standard",
    "none": "identity",
}

PENALTIES = (*BY_NAME, None)


def make_topology(depth: Any, n_classes: int) -> Topology:
    """The tree for ``depth``; ``"auto"`` is the smallest with a leaf per class."""
    if is_auto(depth):
        return Topology.with_leaves(n_classes)
    if not is_integer(depth) or not 1 <= depth <= MAX_DEPTH:
        raise unfit("depth", depth, f"must be 'auto' or an integer between 1 and {MAX_DEPTH}")
    return Topology(int(depth))


def make_scale(scale: Any, *, auto: bool = False) -> str:
    """The kind of scaling that ``scale`` names; with ``auto`` that word is no mistake."""
    if auto and is_auto(scale):
        return "auto"
    if scale is None or isinstance(scale, bool | np.bool_):
        return "minmax" if scale else "identity"
    if not isinstance(scale, str) or scale not in SCALES:
        listed = ", ".join(map(repr, SCALES))
        raise unfit("scale", scale, f"must be 'auto', one of {listed}, True, False or None")
    return SCALES[scale]


def make_solver(solver: Any, native: Callable[[], Solver]) -> Solver:
    """Return the solver of that name, or the solver object itself; ``native`` makes the default."""
    chosen = (
        native() if isinstance(solver, str) and solver == "native" else registry.make_solver(solver)
    )
    chosen.check()
    return chosen


def make_penalties(
    penalty: Any, local_strength: Any, global_strength: Any, **shape: Any
) -> PenaltyPair:
    """The pair of penalties the estimator's parameters name; ``shape`` has those of surrogates."""
    local = positive_number("local_strength", local_strength, zero=True)
    global_ = positive_number("global_strength", global_strength, zero=True)
    if penalty is None and (local > 0 or global_ > 0):
        raise ValueError(
            "penalty=None takes no strengths; set local_strength and global_strength "
            "to 0 or name a penalty."
        )
    if not isinstance(penalty, str | None) or penalty not in PENALTIES:
        listed = ", ".join(map(repr, PENALTIES))
        raise ParameterError(
            "penalty", penalty, f"{shown(penalty)} is unknown; choose one of {listed}."
        )
    make, names = (linear, ()) if penalty is None else BY_NAME[penalty]
    surrogate = make(*(positive_number(name, shape[name]) for name in names))
    return PenaltyPair.of(surrogate, local, global_)


def make_limits(penalties: PenaltyPair, settings: ModelSettings) -> SizeLimits:
    """The checked limits of the size of a tree."""
    limits = []
    for name in SIZE_LIMITS:
        value = getattr(settings, name)
        limits.append(None if value is None else positive_integer(name, value))
        if value is not None and not penalties.counts:
            raise ParameterError(
                name,
                value,
                "needs loss='log' and penalty='count', by which features are removed one "
                "by one; with other settings raise the strength until the tree is small "
                "enough.",
                ("loss", "penalty='count'"),
            )
    return SizeLimits(*limits)


def make_costs(cost_matrix: ArrayLike, n_classes: int) -> FloatArray:
    """Checked costs of calling a class (row) another (column)."""
    try:
        costs = np.array(cost_matrix, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError("cost_matrix", cost_matrix, "must be an array of numbers.") from None
    if costs.shape != (n_classes, n_classes):
        raise ParameterError(
            "cost_matrix",
            cost_matrix,
            f"has shape {costs.shape}; it needs one row and one column per class, "
            f"({n_classes}, {n_classes}), in the order of classes_.",
        )
    if not np.all(np.isfinite(costs)) or np.any(costs < 0):
        raise ParameterError("cost_matrix", cost_matrix, "must hold finite costs >= 0.")
    return costs


def class_weights(class_weight: Any, classes: NDArray[Any], class_totals: FloatArray) -> FloatArray:
    """Factor of each class; ``class_totals`` is the sample weight of each."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        return class_totals.sum() / (len(classes) * class_totals)
    if not isinstance(class_weight, Mapping):
        raise unfit("class_weight", class_weight, "must be None, 'balanced' or a dict")
    return _by_class("class_weight", class_weight, classes, 1.0, np.inf)


def weighted_rows(
    class_weight: Any, weight: FloatArray, labels: NDArray[np.int64], classes: NDArray[Any]
) -> FloatArray:
    """Weights of rows times those of their classes, for losses that know no costs."""
    totals = np.bincount(labels, weight, len(classes)).astype(float)
    factors = class_factors(class_weight, totals, classes)
    with np.errstate(over="ignore"):
        return make_weights(weight * factors[labels], "class_weight times sample_weight")


def class_factors(class_weight: Any, totals: FloatArray, classes: NDArray[Any]) -> FloatArray:
    """Factors on the weights of the rows of each class, none of them zero."""
    factors = class_weights(class_weight, classes, totals)
    if np.any(factors == 0):
        none = classes.tolist()[int(np.argmin(factors))]
        raise ParameterError(
            "class_weight",
            class_weight,
            f"gives class {none!r} no weight, and nothing can be learned of it; "
            "leave its rows out, or set loss='cost'.",
            ("loss",),
        )
    return factors


def make_rates(min_class_rate: Any, classes: NDArray[Any]) -> FloatArray:
    """rho_k per class, from one number, a sequence in the order of the classes, or a dict."""
    if isinstance(min_class_rate, Mapping):
        return _by_class("min_class_rate", min_class_rate, classes, 0.0, 1.0)
    try:
        rates = np.array(min_class_rate, dtype=float)
    except (TypeError, ValueError, OverflowError):
        rule = "must be a number, one per class or a dict"
        raise unfit("min_class_rate", min_class_rate, rule) from None
    if rates.ndim not in (0, 1) or (rates.ndim == 1 and len(rates) != len(classes)):
        raise ParameterError(
            "min_class_rate",
            min_class_rate,
            f"must be one number or {len(classes)}, one per class, got shape {rates.shape}.",
        )
    if not np.all((rates >= 0) & (rates <= 1)):
        raise unfit("min_class_rate", min_class_rate, "must lie in [0, 1]")
    return np.broadcast_to(rates, len(classes)).copy()


def _by_class(
    name: str, values: Mapping[Any, Any], classes: NDArray[Any], default: float, most: float
) -> FloatArray:
    known = set(classes.tolist())
    unknown = [key for key in values if key not in known]
    if unknown:
        close = nearest(unknown[0], known)
        listed = ", ".join(shown(label, 24) for label in classes.tolist()[:MOST_LISTED])
        listed += ", ..." if len(classes) > MOST_LISTED else ""
        raise ParameterError(
            name,
            unknown[0],
            f"names {shown(unknown[0])}, which is not a class of y; "
            f"{f'did you mean {close}?' if close else f'the classes are {listed}.'}",
        )
    try:
        numbers = np.array([values.get(label, default) for label in classes.tolist()], dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(name, values, "must map classes to numbers.") from None
    if not np.all((numbers >= 0) & (numbers <= most) & np.isfinite(numbers)):
        raise ParameterError(name, values, f"must hold finite numbers from 0 to {most:g}.")
    return numbers


def make_numbers(name: str, values: Any) -> Any:
    """``values`` as an array of real numbers; one number and None stay as they are."""
    if values is None or isinstance(values, Real):
        return values
    refuse_masked(name, values)
    try:
        if np.asarray(values).dtype.kind == "c":  # numpy would leave out the imaginary parts
            raise ValueError
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(name, values, "must hold real numbers, one for each row.") from None


def make_weights(sample_weight: FloatArray, name: str = "sample_weight") -> FloatArray:
    """Checked sample weights: sums and products of them must stay within floats."""
    largest = float(np.max(sample_weight, initial=0.0))
    if largest > 0 and not SMALLEST_WEIGHT <= largest <= LARGEST_WEIGHT:
        raise ValueError(
            f"{name} holds numbers up to {largest:.3g}, which are too "
            f"{'small' if largest < 1 else 'large'} to compute with; multiply it by a constant."
        )
    return sample_weight


def make_targets(name: str, targets: Any, classes: NDArray[Any], weight: FloatArray) -> FloatArray:
    """Class probabilities of rows as an array (n_rows, n_classes), checked; rows sum to 1."""
    probabilities = make_numbers(name, targets)
    shape = (len(weight), len(classes))
    if np.shape(probabilities) != shape:
        raise ValueError(
            f"{name} has shape {np.shape(probabilities)}; it needs a row for each sample and a "
            f"column for each class in sorted order, {shape}."
        )
    wrong = np.flatnonzero(~np.all((probabilities >= 0) & (probabilities <= 1), axis=1))
    if len(wrong):
        raise ValueError(
            f"{name} holds {shown(probabilities[wrong[0]].tolist())} in row {wrong[0]}; "
            "probabilities are numbers between 0 and 1."
        )
    sums = probabilities.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1.0) > PROBABILITY_SLACK)
    if len(wrong):
        raise ValueError(
            f"row {wrong[0]} of {name} sums to {sums[wrong[0]]:.6g}; the probabilities of a row "
            "must sum to 1."
        )
    absent = classes[weight @ probabilities <= 0].tolist()
    if absent:
        raise ValueError(
            f"{name} gives class {shown(absent[0])} no probability in any row; leave its samples "
            "out."
        )
    return np.where(
        np.max(probabilities, axis=1, keepdims=True) == 1,
        probabilities,
        probabilities / sums[:, None],
    )


def make_steepness(steepness: Any) -> float:
    """gamma, below the point where gates turn into steps that no float can tell apart."""
    value = positive_number("steepness", steepness)
    if not SMALLEST_STEEPNESS <= value <= LARGEST_STEEPNESS:
        rule = f"must lie between {SMALLEST_STEEPNESS:g} and {LARGEST_STEEPNESS:g}"
        raise unfit("steepness", steepness, rule)
    return value
