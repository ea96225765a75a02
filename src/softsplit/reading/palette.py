"""The colours of classes, and the ink that can be read on them, for the page and all pictures."""

from __future__ import annotations

# Okabe and Ito's colours, which people with any common colour blindness can tell apart.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8C8C8C",
)  # fmt: skip
DARK_INK, LIGHT_INK = "#14181d", "#ffffff"


def class_colour(k: int) -> str:
    """The colour of class k. Colours repeat after eight classes: write names beside them."""
    return COLOURS[k % len(COLOURS)]


def ink_on(colour: str) -> str:
    """The dark or the light ink, whichever has the higher contrast on ``colour`` ("#rrggbb").

    Contrast and relative luminance are those of WCAG 2.1.
    """
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return LIGHT_INK if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.058 else DARK_INK
