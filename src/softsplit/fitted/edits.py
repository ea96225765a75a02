"""The edits of a tree by hand: what was done, when and why, and which of its numbers were set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from softsplit.support.messages import visible


@dataclass(frozen=True)
class Edit:
    """One edit.

    Attributes
    ----------
    verb : str
        A method of ``EditedTree``.
    arguments : mapping
        What it was given, by name, as plain values.
    date : str
        Day of the edit, as 2026-11-18.
    reason : str, optional
    outcome : str
        What else it changed: "threshold of question 1: -15 to -10".
    """

    verb: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    date: str = ""
    reason: str | None = None
    outcome: str = ""

    @property
    def call(self) -> str:
        """The edit as it is written in Python, without its reason."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.verb}({given})"

    @property
    def line(self) -> str:
        """The edit on one line, for people."""
        because = "" if self.reason is None else f" - {visible(self.reason)}"
        outcome = f" ({visible(self.outcome)})" if self.outcome else ""
        return f"{self.date} {visible(self.call)}{outcome}{because}"


@dataclass(frozen=True)
class Edits:
    """All edits of a tree, and the places of numbers that stay as they are in a refit.

    Attributes
    ----------
    listed : tuple of Edit
        In the order in which they were made.
    weights : tuple of (branch, feature)
        Coefficients that were set or rounded.
    thresholds : tuple of int
        Branches whose threshold was set.
    leaves : tuple of int
        Leaves that were set.
    """

    listed: tuple[Edit, ...] = ()
    weights: tuple[tuple[int, int], ...] = ()
    thresholds: tuple[int, ...] = ()
    leaves: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.listed)

    @property
    def lines(self) -> list[str]:
        """What texts and pages say of them, a line each."""
        return [edit.line for edit in self.listed]

    def noted(self, edit: Edit) -> Edits:
        """The edits with one more."""
        return replace(self, listed=(*self.listed, edit))

    def holding(
        self,
        weights: Iterable[tuple[int, int]] = (),
        thresholds: Iterable[int] = (),
        leaves: Iterable[int] = (),
    ) -> Edits:
        """The edits with further places that were set."""
        return replace(
            self,
            weights=tuple(sorted({*self.weights, *weights})),
            thresholds=tuple(sorted({*self.thresholds, *thresholds})),
            leaves=tuple(sorted({*self.leaves, *leaves})),
        )

    def moved(self, branches: Sequence[int], leaves: Sequence[Sequence[int]]) -> Edits:
        """The edits of a smaller tree, each of whose branches and leaves names where it was.

        A leaf that stands for several is set if all of them were.
        """
        place = {old: new for new, old in enumerate(branches) if old >= 0}
        return replace(
            self,
            weights=tuple((place[t], j) for t, j in self.weights if t in place),
            thresholds=tuple(place[t] for t in self.thresholds if t in place),
            leaves=tuple(n for n, old in enumerate(leaves) if old and set(old) <= set(self.leaves)),
        )


NO_EDITS = Edits()
