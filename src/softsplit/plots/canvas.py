"""What all pictures share: matplotlib when it is needed, axes, colours, and names as plain text."""

from __future__ import annotations

from typing import Any

import numpy as np

from softsplit.support.messages import visible

# Okabe and Ito's colours, which people with any common colour blindness can tell apart.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#7F7F7F",
)  # fmt: skip
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
    found = list(np.ravel(given))
    if len(found) != len(heights):
        raise ValueError(f"ax must hold {len(heights)} axes, got {len(found)}.")
    return found


def class_colours(n_classes: int) -> list[Any]:
    """A colour per class; beyond eight they come from a colour map and are only nearly distinct."""
    if n_classes <= len(COLOURS):
        return list(COLOURS[:n_classes])
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in colormaps[SEQUENTIAL](np.linspace(0, 1, n_classes))]


def ink_on(colour: Any) -> str:
    """Black or white, whichever can be read on the colour."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.55 else INK


def plain(text: Any, length: int | None = None) -> str:
    """A name as it stands: no mathematics between dollars, one line, the middle left out if long.

    A label that begins with an underscore would be left out of legends, so that a space is set
    before it.
    """
    name = " ".join(visible(text).split())
    if length is not None and len(name) > length:
        ending = (length - 1) // 3
        name = f"{name[: length - 1 - ending]}\N{HORIZONTAL ELLIPSIS}{name[len(name) - ending :]}"
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def minus(text: str) -> str:
    """Hyphens before numbers as minus signs."""
    return text.replace("-", "\N{MINUS SIGN}")
