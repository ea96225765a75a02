"""Pictures, one module each. They need matplotlib: ``pip install 'softsplit[plots]'``.

Displays follow scikit-learn: ``XDisplay.from_estimator(..., ax=)`` draws and returns the display,
which holds ``ax_`` and ``figure_`` and can be drawn again with ``plot(ax=)``. Functions take
``ax=`` and return the axes they drew on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softsplit.support.options import late_names

if TYPE_CHECKING:
    from softsplit.plots.coefficients import CoefficientsDisplay
    from softsplit.plots.decomposition import decomposition_trace
    from softsplit.plots.path import StrengthGridDisplay, StrengthPathDisplay
    from softsplit.plots.regions import DecisionRegionsDisplay
    from softsplit.plots.reliability import ReliabilityDisplay
    from softsplit.plots.starts import StartsDisplay
    from softsplit.plots.tree import TreeDisplay

__all__ = [
    "CoefficientsDisplay",
    "DecisionRegionsDisplay",
    "ReliabilityDisplay",
    "StartsDisplay",
    "StrengthGridDisplay",
    "StrengthPathDisplay",
    "TreeDisplay",
    "decomposition_trace",
]

__getattr__, __dir__ = late_names(
    __name__, __all__,
    "coefficients", "decomposition", "path", "regions", "reliability", "starts", "tree",
)  # fmt: skip
