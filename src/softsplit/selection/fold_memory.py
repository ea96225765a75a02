"""What trees of one fold tell those that follow on it."""

from __future__ import annotations

from dataclasses import dataclass, field

from softsplit.selection.held_out import TestRows
from softsplit.selection.scoreboard import Candidate
from softsplit.solvers.base import Path
from softsplit.training.preparation import Prepared
from softsplit.training.rows import Rows


@dataclass
class FoldMemory:
    """Cache of fold rows, prepared problems and paths for candidates that are scored again."""

    rows: dict[int, tuple[Rows, Rows]] = field(default_factory=dict)
    prepared: dict[tuple[Candidate, int], tuple[Prepared, TestRows]] = field(default_factory=dict)
    paths: dict[tuple[Candidate, int], list[Path]] = field(default_factory=dict)

    def alike(self, candidate: Candidate, fold: int) -> tuple[Prepared, TestRows] | None:
        """Return problem and test rows of another candidate with the same scaling on this fold."""
        for (other, its_fold), known in list(self.prepared.items()):
            alike = (other.scale, other.loss, other.teacher)
            if its_fold == fold and alike == (candidate.scale, candidate.loss, candidate.teacher):
                return known
        return None

    def shallower(self, candidate: Candidate, fold: int) -> list[Path]:
        """Return the paths of the same candidate at the next smaller depth that was trained."""
        for depth in range(candidate.depth - 1, 0, -1):
            paths = self.paths.get((candidate._replace(depth=depth), fold))
            if paths is not None:
                return paths
        return []

    def clear(self) -> None:
        """Drop all candidates."""
        self.prepared.clear()
        self.paths.clear()

    def keep_only(self, candidate: Candidate) -> None:
        """Drop all other candidates: each holds copies of the rows of its folds."""
        family = candidate.family
        for known in (self.prepared, self.paths):
            for key in [key for key in known if key[0] != family]:
                del known[key]
