"""Where the boxes of a drawn tree go from left to right, whatever draws them.

Every node is as wide as its own box or as its children side by side, whichever is more, and stands
above the middle between its children.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, TypeVar


class Placed(Protocol):
    """A box with a left edge ``x``, and the boxes below it: none, or two."""

    x: float

    @property
    def width(self) -> float: ...

    @property
    def children(self) -> Sequence[Self]: ...


T = TypeVar("T", bound=Placed)


def spread(box: Placed, left: float, gap: float) -> float:
    """Place a subtree with its left edge at ``left``; its right edge."""
    if not box.children:
        box.x = left
        return left + box.width
    right = left
    for i, child in enumerate(box.children):
        right = spread(child, right + (gap if i else 0.0), gap)
    middles = [child.x + child.width / 2 for child in box.children]
    box.x = sum(middles) / 2 - box.width / 2
    overhang = left - box.x
    if overhang > 0:
        for level in levels(box):
            for other in level:
                other.x += overhang
        right += overhang
    return max(right, box.x + box.width)


def levels(root: T) -> list[list[T]]:
    """The boxes by their depth."""
    found: list[list[T]] = []
    here = [root]
    while here:
        found.append(here)
        here = [child for box in here for child in box.children]
    return found
