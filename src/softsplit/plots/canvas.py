"""What all pictures share: matplotlib when it is needed, axes, colours, and names as plain text."""

from __future__ import annotations

from typing import Any

import numpy as np

from softsplit.reading.palette import COLOURS
from softsplit.support.messages import shortened

INK, PALE = "#25292e", "#8a8f96"
DIVERGING, SEQUENTIAL = "PuOr", "cividis"


def matplotlib_pyplot() -> Any:
    """matplotlib's pyplot, or one sentence on how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib; install it with pip install 'softsplit[plots]'."
        ) from error
    return plt


def axes(ax: Any = None, size: tuple[float, float] = (6.4, 3.8)) -> Any:
    """The given axes, or new ones."""
    if ax is not None:
        return ax
    return matplotlib_pyplot().subplots(figsize=size, layout="constrained")[1]


def stacked_axes(given: Any, heights: list[float], size: tuple[float, float]) -> list[Any]:
    """The given axes, one per height, or new ones above one another with a common x axis."""
    if given is None:
        return list(
            matplotlib_pyplot().subplots(
                len(heights), 1, figsize=size, sharex=True, height_ratios=heights,
                layout="constrained",
            )[1]
        )  # fmt: skip
    panels = list(np.ravel(given))
    if len(panels) != len(heights):
        raise ValueError(f"ax must hold {len(heights)} axes, got {len(panels)}.")
    return panels


def class_colours(n_classes: int) -> list[Any]:
    """A colour per class, those of the page up to eight classes.

    With more classes the page repeats colours and writes names beside them. Legends and regions
    have colours alone, so that here they come from a colour map and are nearly distinct.
    """
    if n_classes <= len(COLOURS):
        return list(COLOURS[:n_classes])
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in colormaps[SEQUENTIAL](np.linspace(0, 1, n_classes))]


def plain(text: Any, length: int | None = None) -> str:
    """A name as it stands: no mathematics between dollars, one line, the middle left out if long.

    A label that begins with an underscore would be left out of legends, so that a space is set
    before it.
    """
    name = shortened(text, length)
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def minus(text: str) -> str:
    """Hyphens before numbers as minus signs."""
    return text.replace("-", "\N{MINUS SIGN}")
