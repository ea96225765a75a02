"""All that is known about the capacity of trees of one size, in one object.

``compare`` sets soft trees beside other classifiers: bounds on their VC dimension in one table.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from softsplit.capacity.bounds import Bound, vc_lower_bound, vc_upper_bound
from softsplit.capacity.constructions import required_steepness
from softsplit.capacity.growth import (
    GeneralisationBound,
    TreeSize,
    feature_levels,
    generalisation_bound,
    hard_tree_growth,
    sigmoid_network_growth,
    threshold_network_growth,
)
from softsplit.support.arguments import whole_number
from softsplit.tree.parameters import tree_depth

if TYPE_CHECKING:
    import pandas as pd

EXACT = "half-spaces"


@dataclass(frozen=True)
class ComparedModel:
    """One line of the comparison; ``lower`` equals ``upper`` where the dimension is known."""

    model: str
    parameters: int
    lower: int
    upper: int
    lower_from: str
    upper_from: str


def compare(
    depth: int,
    n_features: int,
    binary: bool = False,
    *,
    levels: int | None = None,
    hidden_units: int | None = None,
) -> pd.DataFrame:
    """A table of VC dimensions: soft tree, perceptron, hard tree and two-layer networks.

    Parameters
    ----------
    depth, n_features, binary, levels
        As in ``vc_lower_bound`` and ``vc_upper_bound``.
    hidden_units : int, optional
        Hidden units of the networks; as many as the tree has branches by default.

    Returns
    -------
    DataFrame
        A row per model; columns ``model``, ``parameters``, ``lower``, ``upper``, ``lower_from``
        and ``upper_from``, the last two saying in a few words where the bounds come from.
    """
    # Here, so that the command line can list the models without a second of loading.
    import pandas as pd

    rows = compared_models(depth, n_features, binary, levels=levels, hidden_units=hidden_units)
    return pd.DataFrame([asdict(row) for row in rows])


def compared_models(
    depth: int,
    n_features: int,
    binary: bool = False,
    *,
    levels: int | None = None,
    hidden_units: int | None = None,
) -> list[ComparedModel]:
    """The rows of ``compare``."""
    depth, n_features = tree_depth(depth), whole_number("n_features", n_features)
    levels = feature_levels(binary, levels)
    branches = 2**depth - 1
    hidden = branches if hidden_units is None else whole_number("hidden_units", hidden_units)
    rows = [
        ComparedModel("perceptron", n_features + 1, n_features + 1, n_features + 1, EXACT, EXACT),
        _soft_tree(depth, n_features, levels),
        _hard_tree(depth, n_features, levels),
        *_networks(n_features, hidden, levels),
    ]
    return [_cap(row, n_features, levels) for row in rows]


def _soft_tree(depth: int, n_features: int, levels: int | None) -> ComparedModel:
    lower = vc_lower_bound(depth, n_features, levels=levels)
    upper = vc_upper_bound(depth, n_features, levels=levels)
    return ComparedModel(
        f"soft tree, depth {depth}",
        TreeSize(depth, n_features).n_parameters,
        lower.value,
        upper.value,
        lower.source,
        upper.source,
    )


def _hard_tree(depth: int, n_features: int, levels: int | None) -> ComparedModel:
    """The constructions for soft trees keep clear of every split, hence hold for hard ones."""
    branches = 2**depth - 1
    parameters = branches * (n_features + 1) + branches + 1
    lower = vc_lower_bound(depth, n_features, levels=levels)
    upper, source = n_features + 1, EXACT
    if depth > 1:
        upper = hard_tree_growth(depth, n_features).largest_shattered()
        source = "Sauer, per branch"
    name = f"hard oblique tree, depth {depth}"
    return ComparedModel(name, parameters, lower.value, upper, lower.source, source)


def _networks(n_features: int, hidden: int, levels: int | None) -> list[ComparedModel]:
    """Steep sigmoids come as close to threshold units as needed: one lower bound for both."""
    # Weights and threshold of every unit, its output weight, and the threshold of the output.
    parameters = hidden * (n_features + 2) + 1
    # p u + 1 holds up to this number of hidden units u; the others can be idle.
    useful = min(hidden, 2 ** (n_features + 1) // (n_features**2 + n_features + 2))
    lower, source = n_features * useful + 1, "Anthony and Bartlett, 6.2"
    # Points on a line: the hidden units step between them in turn.
    in_line = hidden + 1 if levels is None else min(hidden + 1, levels)
    if in_line > lower:
        lower, source = in_line, "points in a line"
    threshold = threshold_network_growth(n_features, hidden).largest_shattered()
    sigmoid = sigmoid_network_growth(n_features, hidden, levels).largest_shattered()
    counted = "as for soft trees"
    units = f"{hidden} hidden unit{'s' if hidden > 1 else ''}"
    return [
        ComparedModel(
            f"two-layer threshold network, {units}",
            parameters, lower, threshold, source, "Baum and Haussler",
        ),
        ComparedModel(
            f"two-layer sigmoid network, {units}",
            parameters, lower, sigmoid, source, counted,
        ),
    ]  # fmt: skip


def _cap(row: ComparedModel, n_features: int, levels: int | None) -> ComparedModel:
    """No model labels more points than there are."""
    # Beyond 1000 bits no bound comes near; the number itself might not fit into memory.
    if levels is None or n_features * math.log2(levels) > 1000:
        return row
    points = levels**n_features
    return row if row.upper <= points else replace(row, upper=points, upper_from="all points")


@dataclass(frozen=True)
class Summary:
    """Bounds, the steepness at which the lower one is shown, and other models beside them.

    ``paper`` is None where the construction of the paper does not apply; ``generalisation`` is
    None where no number of samples was given.
    """

    depth: int
    n_features: int
    levels: int | None
    lower: Bound
    paper: Bound | None
    upper: Bound
    required_steepness: float
    models: tuple[ComparedModel, ...]
    generalisation: GeneralisationBound | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values = asdict(self)
        if self.generalisation is not None:
            values["generalisation"]["vacuous"] = self.generalisation.vacuous
        return values


def summarise(
    depth: int,
    n_features: int,
    binary: bool = False,
    *,
    levels: int | None = None,
    hidden_units: int | None = None,
    n_samples: int | None = None,
    training_error: float = 0.0,
    confidence: float = 0.95,
) -> Summary:
    """Everything in this package about trees of one size."""
    levels = feature_levels(binary, levels)
    return Summary(
        depth=depth,
        n_features=n_features,
        levels=levels,
        lower=vc_lower_bound(depth, n_features, levels=levels),
        paper=(
            vc_lower_bound(depth, n_features, levels=levels, method="lb-vc")
            if depth == 1 or n_features >= depth + 1
            else None
        ),
        upper=vc_upper_bound(depth, n_features, levels=levels),
        required_steepness=required_steepness(depth, n_features, levels=levels),
        models=tuple(compared_models(depth, n_features, levels=levels, hidden_units=hidden_units)),
        generalisation=None
        if n_samples is None
        else generalisation_bound(
            TreeSize(depth, n_features),
            n_samples=n_samples,
            training_error=training_error,
            confidence=confidence,
            levels=levels,
        ),
    )
