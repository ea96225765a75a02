"""How much the starts of a training differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from softsplit.fitted.model import holder_of
from softsplit.plots.canvas import INK, PALE, axes, plain
from softsplit.reading.palette import COLOURS
from softsplit.support.arrays import FloatArray

BLUE, VERMILLION = COLOURS[0], COLOURS[5]


@dataclass(repr=False, eq=False)
class StartsDisplay:
    """Objectives of all starts, as points and as a box, with the tree that was kept.

    Parameters
    ----------
    objectives : dict of str to array
        Of the feasible starts, by the name of a training.
    kept : dict of str to float
        Of the tree that was kept; a search around the best start may have lowered it further.
    infeasible : dict of str to int
        Starts that ended in no feasible tree.

    Attributes
    ----------
    ax_, figure_
    """

    objectives: dict[str, FloatArray]
    kept: dict[str, float]
    infeasible: dict[str, int]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> StartsDisplay:
        """Draw the starts of a fitted tree, or of several.

        Parameters
        ----------
        estimator : fitted SoftTreeClassifier, or a mapping of names to them
            Objectives can be compared only if they are of the same problem.
        ax : matplotlib axes, optional
        """
        given = estimator if isinstance(estimator, Mapping) else {"": estimator}
        objectives, kept, infeasible = {}, {}, {}
        for name, value in given.items():
            tree = holder_of(value)
            if not getattr(tree, "starts_", None):
                raise ValueError(
                    "this tree has no record of its starts, because it was not "
                    "trained in this process."
                )
            good = [s.objective for s in tree.starts_ if s.status.usable]
            objectives[str(name)] = np.array(good)
            kept[str(name)] = float(tree.objective_)
            infeasible[str(name)] = len(tree.starts_) - len(good)
        return cls(objectives, kept, infeasible).plot(ax)

    def plot(self, ax: Any = None) -> StartsDisplay:
        """Draw on ``ax`` or on a new figure."""
        ax = axes(ax, (6.4, 1.2 + 0.75 * len(self.objectives)))
        self.ax_, self.figure_ = ax, ax.figure
        for row, (name, values) in enumerate(self.objectives.items()):
            self._row(row, values, self.kept[name], self.infeasible[name])
        ax.set_yticks(range(len(self.objectives)), [plain(name, 30) for name in self.objectives])
        ax.set_ylim(len(self.objectives) - 0.4, -0.6)
        if list(self.objectives) == [""]:
            ax.set_yticks([])
        ax.set_xlabel("objective (lower is better)")
        points = ax.plot([], [], "o", color=BLUE, alpha=0.5, ms=5)
        star = ax.plot([], [], "*", color=VERMILLION, mec=INK, mew=0.5, ms=12)
        ax.legend(
            [*points, *star], ["one start", "the tree that was kept"], fontsize="small", ncols=2,
            loc="lower right", bbox_to_anchor=(1, 1), frameon=False,
        )  # fmt: skip
        return self

    def _row(self, row: int, values: FloatArray, kept: float, infeasible: int) -> None:
        if len(values) > 1:
            self.ax_.boxplot(
                values, positions=[row], orientation="horizontal", widths=0.5, showfliers=False,
                manage_ticks=False, medianprops={"color": INK}, boxprops={"color": PALE},
                whiskerprops={"color": PALE}, capprops={"color": PALE},
            )  # fmt: skip
        # Points are set apart in a fixed pattern: equal objectives would hide one another.
        apart = 0.3 * (np.modf(np.arange(len(values)) * 0.618034)[0] - 0.5)
        self.ax_.plot(values, row + apart, "o", color=BLUE, alpha=0.5, ms=5, mew=0)
        self.ax_.plot([kept], [row], "*", color=VERMILLION, mec=INK, mew=0.5, ms=12, zorder=4)
        if infeasible:
            self.ax_.annotate(
                f"{infeasible} infeasible", (1, row), xycoords=("axes fraction", "data"),
                xytext=(-4, 12), textcoords="offset points", ha="right", fontsize=7, color=PALE,
            )  # fmt: skip
