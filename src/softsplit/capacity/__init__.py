"""What a tree of given size can and cannot express: VC dimension, section 5 of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softsplit.support.options import late_names

if TYPE_CHECKING:
    from softsplit.capacity.bounds import (
        Bound,
        lb_vc,
        vc_lower_bound,
        vc_upper_bound,
    )
    from softsplit.capacity.constructions import (
        Construction,
        construct,
        required_steepness,
    )
    from softsplit.capacity.growth import (
        GeneralisationBound,
        Growth,
        TreeSize,
        generalisation_bound,
    )
    from softsplit.capacity.shattering import Shattering, ShatteringCheck, shatter
    from softsplit.capacity.summary import Summary, compare, summarise

__all__ = [
    "Bound",
    "Construction",
    "GeneralisationBound",
    "Growth",
    "Shattering",
    "ShatteringCheck",
    "Summary",
    "TreeSize",
    "compare",
    "construct",
    "generalisation_bound",
    "lb_vc",
    "required_steepness",
    "shatter",
    "summarise",
    "vc_lower_bound",
    "vc_upper_bound",
]

# The bounds need neither numba nor pandas.
__getattr__, __dir__ = late_names(
    __name__, __all__, "bounds", "growth", "constructions", "summary", "shattering"
)
