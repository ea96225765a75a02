"""All that is known about the capacity of trees of one size, in one object."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from softsplit.capacity.bounds import Bound, feature_levels, vc_lower_bound, vc_upper_bound
from softsplit.capacity.comparison import Model, compared_models
from softsplit.capacity.constructions import required_steepness
from softsplit.capacity.generalisation import GeneralisationBound, generalisation_bound
from softsplit.capacity.growth import TreeSize


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
    models: tuple[Model, ...]
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
