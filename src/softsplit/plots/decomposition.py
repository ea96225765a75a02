"""The paper's picture of a decomposition: accuracy and saved processor time per macro-iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from softsplit.plots.canvas import axes
from softsplit.support.messages import unfit

GREEN, BLUE, YELLOW, INK = "#3f8f4f", "#3b6fb6", "#f2c230", "#333333"


class Trace(Protocol):
    """Rows of a run, one per macro-iteration: a ``DecompositionTrace``."""

    @property
    def initialised(self) -> bool:
        """Whether row 0 comes after an initialisation."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


def decomposition_trace(
    traces: Trace | Sequence[Trace],
    *,
    baseline_accuracy: float | None = None,
    baseline_seconds: float | None = None,
    accuracy: str = "test_accuracy",
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Accuracy and saving of CPU time against no decomposition, after each macro-iteration.

    Figures 4 and 5 of the paper: a dashed profile with a circle per macro-iteration (left axis), a
    green bar for the CPU time saved in percent (right axis), a dash-dotted line for the accuracy
    without decomposition; if there was an initialisation, its circle and bar are blue.

    Parameters
    ----------
    traces : DecompositionTrace or sequence of them
        Several runs are averaged; one that ended early keeps its last row.
    baseline_accuracy, baseline_seconds : float, optional
        Of training without decomposition. Without the second there are no bars.
    accuracy : {"test_accuracy", "train_accuracy"}
    title : str, optional
    ax : matplotlib axes, optional

    Returns
    -------
    The axes with the accuracy. The axes with the bars share their x axis.
    """
    runs: list[Any] = [traces] if hasattr(traces, "initialised") else list(traces)
    if not runs or any(len(run) == 0 for run in runs):
        raise ValueError("decomposition_trace needs at least one trace with a row.")
    if accuracy not in ("test_accuracy", "train_accuracy"):
        raise unfit("accuracy", accuracy, "must be 'test_accuracy' or 'train_accuracy'")
    if len({run.initialised for run in runs}) > 1:
        raise ValueError("traces with and without an initialisation cannot be averaged.")
    if baseline_seconds is not None and not 0 < baseline_seconds < np.inf:
        raise unfit("baseline_seconds", baseline_seconds, "must be a number > 0")
    first = 0 if runs[0].initialised else 1
    if all(len(run) <= first for run in runs):
        raise ValueError("decomposition_trace needs at least one macro-iteration.")
    level, seconds = _mean(runs, accuracy), _mean(runs, "cpu_seconds")
    if np.isnan(level).all():
        raise ValueError(f"the trace holds no {accuracy}; give the solver rows to watch.")
    steps = np.arange(first, max(len(level), first + 1))
    level, seconds = 100 * level[first:], seconds[first:]
    steps = steps[: len(level)]
    ax = axes(ax)
    if baseline_seconds is not None:
        _bars(ax, steps, 100 * (1 - seconds / baseline_seconds))
    if baseline_accuracy is not None:
        ax.axhline(100 * baseline_accuracy, color=INK, ls="-.", lw=1, label="no decomposition")
    ax.plot(steps, level, color=INK, ls="--", lw=1.2, zorder=3)
    for chosen, colour, label in (
        (steps > 0, YELLOW, "decomposition"),
        (steps == 0, BLUE, "initialisation"),
    ):
        if np.any(chosen):
            ax.plot(
                steps[chosen], level[chosen], "o", color=colour, mec=INK, ms=6, zorder=4,
                label=label,
            )  # fmt: skip
    which = "testing" if accuracy == "test_accuracy" else "training"
    ax.set(xlabel="macro-iteration", ylabel=f"{which} accuracy (%)", title=title or "")
    ax.set_xticks(steps, ["init." if step == 0 else str(step) for step in steps])
    ax.legend(loc="best", fontsize="small", framealpha=0.6)
    return ax


def _bars(ax: Any, steps: Any, saved: Any) -> None:
    """Bars on the right axis, behind the profile."""
    right = ax.twinx()
    colours = [BLUE if step == 0 else GREEN for step in steps]
    right.bar(steps, saved, width=0.5, color=colours, alpha=0.45)
    right.axhline(0, color=GREEN, lw=0.6)
    right.set_ylabel("CPU time saved (%)", color=GREEN)
    right.tick_params(axis="y", colors=GREEN)
    low = min(0.0, float(np.min(saved)))
    right.set_ylim(low - 0.02 * (100 - low) if low < 0 else 0, 100)
    ax.set_zorder(right.get_zorder() + 1)
    ax.patch.set_visible(False)


def _mean(runs: Sequence[Trace], name: str) -> Any:
    longest = max(len(run) for run in runs)
    values = [[getattr(run[min(m, len(run) - 1)], name) for m in range(longest)] for run in runs]
    return np.mean(values, axis=0)
