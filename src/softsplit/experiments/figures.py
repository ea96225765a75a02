"""Figures from the store alone."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from softsplit.experiments.choice import (
    METHOD,
    STRENGTHS,
    outer,
    over_starts_and_folds,
    paper_choice,
    usable,
)
from softsplit.experiments.spec import Spec

MEASURES = {
    "test_accuracy": "accuracy",
    "local_sparsity": r"local sparsity $\delta^L$ (%)",
    "global_sparsity": r"global sparsity $\delta^G$ (%)",
}
COMPARED = {"global": ("L0glob", "Linf"), "local": ("L0loc", "L1")}


def figures(spec: Spec, frame: pd.DataFrame) -> Iterator[tuple[str, bytes]]:
    """The figures a spec asks for: their names, and each as SVG."""
    makers = {"scatter": scatter_figures, "boxes": box_figures, "heatmaps": heat_figures}
    for kind in spec.figures:
        for name, figure in makers[kind](spec, frame):
            content = io.BytesIO()
            # Without a date the same store gives the same file.
            figure.savefig(content, format="svg", metadata={"Date": None})
            _pyplot().close(figure)
            yield name, content.getvalue()


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise ImportError(
            "figures need matplotlib; install it with: pip install 'softsplit[experiments]'."
        ) from None
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "softsplit"
    from matplotlib import pyplot

    return pyplot


def scatter_figures(spec: Spec, frame: pd.DataFrame) -> Iterator[tuple[str, Any]]:
    """l0-based models (y) against l1- and linf-based ones (x), a numbered circle per data set."""
    chosen = paper_choice(frame).reset_index().set_index(["dataset", "model"])
    for scope, (ours, theirs) in COMPARED.items():
        shown = [d for d in spec.dataset_names if {(d, ours), (d, theirs)} <= set(chosen.index)]
        if not shown:
            continue
        figure, axes = _pyplot().subplots(1, 3, figsize=(13, 4.6), layout="constrained")
        for axis, (measure, label) in zip(axes, MEASURES.items(), strict=True):
            x = np.array([chosen.loc[(d, theirs), measure] for d in shown])
            y = np.array([chosen.loc[(d, ours), measure] for d in shown])
            _scatter(axis, x, y)
            axis.set(title=label, xlabel=theirs, ylabel=ours)
        legend = ",  ".join(f"{i} {name}" for i, name in enumerate(shown, start=1))
        figure.supxlabel(legend, fontsize="small")
        yield f"scatter_{scope}", figure


def _scatter(axis: Any, x: Any, y: Any) -> None:
    low, high = min(x.min(), y.min()), max(x.max(), y.max())
    margin = 0.05 * (high - low) + 1e-3
    ends = (low - margin, high + margin)
    axis.plot(ends, ends, color="0.6", linewidth=1, zorder=1)
    axis.scatter(x, y, s=150, facecolor="white", edgecolor="tab:red", zorder=2)
    for i, (a, b) in enumerate(zip(x, y, strict=True), start=1):
        axis.annotate(str(i), (a, b), ha="center", va="center", fontsize=7, zorder=3)
    axis.set(xlim=ends, ylim=ends, aspect="equal")


def box_figures(spec: Spec, frame: pd.DataFrame) -> Iterator[tuple[str, Any]]:
    """Test accuracy of every start (mean over the folds) at the best strength, a box per method."""
    chosen = paper_choice(frame).reset_index()[[*METHOD, *STRENGTHS]]
    rows = usable(outer(frame)).merge(chosen, on=[*METHOD, *STRENGTHS])
    starts = rows.groupby([*METHOD, "start"], observed=True)["test_accuracy"].mean()
    pairs = [(m, s) for m in spec.model_names for s in spec.solvers]
    shown = [d for d in spec.dataset_names if d in set(chosen["dataset"])]
    columns = min(4, len(shown))
    lines = -(-len(shown) // columns)
    figure, axes = _pyplot().subplots(
        lines, columns, figsize=(3.2 * columns, 2.6 * lines), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(shown) :]:
        axis.axis("off")
    for axis, dataset in zip(axes.flat, shown, strict=False):
        here = [pair for pair in pairs if (dataset, *pair) in chosen.set_index(METHOD).index]
        values = [100 * starts.loc[(dataset, *pair)].to_numpy() for pair in here]
        labels = [m if len(spec.solvers) == 1 else f"{m}\n{s}" for m, s in here]
        axis.boxplot(values, tick_labels=labels)
        axis.set(title=dataset)
        axis.tick_params(labelsize="small")
    figure.supylabel("test accuracy of a start (%)")
    yield "boxes", figure


def heat_figures(spec: Spec, frame: pd.DataFrame) -> Iterator[tuple[str, Any]]:
    """Three maps per data set and model; white is the best value, dark red the worst."""
    means = over_starts_and_folds(usable(outer(frame)), [*METHOD, *STRENGTHS]).reset_index()
    for (dataset, model, solver), part in means.groupby(METHOD, sort=False):
        figure, axes = _pyplot().subplots(1, 3, figsize=(14, 4.6), layout="constrained")
        for axis, (measure, label) in zip(axes, MEASURES.items(), strict=True):
            grid = part.pivot(index="local_strength", columns="global_strength", values=measure)
            _heat(axis, grid)
            axis.set(title=label)
        name = dataset if len(spec.solvers) == 1 else f"{dataset} ({solver})"
        figure.suptitle(f"{name}, {model}")
        safe = f"{dataset}_{model}".replace("+", "_") + (
            "" if len(spec.solvers) == 1 else f"_{solver}"
        )
        yield f"heatmap_{safe}", figure


def _heat(axis: Any, grid: pd.DataFrame) -> None:
    image = axis.imshow(grid.to_numpy(), cmap="Reds_r", origin="lower", aspect="auto")
    axis.figure.colorbar(image, ax=axis)
    for set_ticks, set_labels, strengths in (
        (axis.set_xticks, axis.set_xticklabels, grid.columns),
        (axis.set_yticks, axis.set_yticklabels, grid.index),
    ):
        set_ticks(range(len(strengths)))
        set_labels([f"$2^{{{np.log2(s):g}}}$" if s > 0 else "0" for s in strengths], fontsize=7)
    axis.set(xlabel=r"global strength $\lambda^G$", ylabel=r"local strength $\lambda^L$")
