"""What all pictures share: matplotlib when it is needed, and axes to draw on."""

from __future__ import annotations

from typing import Any


def axes(ax: Any = None, size: tuple[float, float] = (6.4, 3.8)) -> Any:
    """The given axes, or new ones."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib; install it with pip install 'softsplit[plots]'."
        ) from error
    return plt.subplots(figsize=size, layout="constrained")[1]
