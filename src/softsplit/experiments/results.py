"""What a finished experiment hands over: table, verdicts, notes and figures as files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softsplit.data.named import file_of
from softsplit.experiments.choice import (
    METHOD,
    STRENGTHS,
    outer,
    over_starts_and_folds,
    paper_choice,
    usable,
)
from softsplit.experiments.runner import RunSummary, summarise
from softsplit.experiments.spec import Grid, Spec
from softsplit.experiments.store import Store
from softsplit.experiments.tables import (
    csv,
    make_table,
    markdown,
    nested_verdict,
    paper_verdict,
    peer_summary,
    spec_rows,
    table_files,
    write_table,
)
from softsplit.support.output_files import PathName, check_outputs, write_file


def write_results(spec: Spec, store: Store, folder: Path) -> list[Path]:
    """The table as CSV, Markdown and LaTeX; the Markdown says how it came about."""
    folder.mkdir(parents=True, exist_ok=True)
    verdict_files = _verdict_files(spec, folder) if spec.table == "paper" else ()
    _check_outputs(spec, store, [*table_files(folder, spec.name), *verdict_files])
    table = make_table(spec, store)
    notes = ["\n", _origin(spec, store)]
    if spec.table == "peers":
        notes.append(
            "\n## Means over the data sets\n\nSeconds of a tree are those of all trainings behind "
            "the choice of its strength.\n\n" + markdown(peer_summary(table))
        )
    if spec.table == "paper":
        frame = spec_rows(spec, store)
        verdict, nested = paper_verdict(frame, spec), nested_verdict(frame)
        notes += _verdicts(verdict, nested, partial_grid(spec, summarise(spec, store)))
    paths = write_table(table, folder, spec.name, spec.title, "".join(notes))
    if spec.table == "paper":
        for path, content in zip(verdict_files, (verdict, nested), strict=True):
            if not content.empty:
                write_file(path, csv(content).encode("utf-8"))
        paths += [p for p in verdict_files if p.is_file()]
    return paths


def write_plots(spec: Spec, store: Store, folder: Path) -> list[Path]:
    """The figures the spec asks for."""
    if not spec.figures:
        raise ValueError(f"experiment {spec.name!r} has no figures; its table says it all.")
    frame = spec_rows(spec, store)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, content in figures(spec, frame):
        path = folder / f"{spec.name}_{name}.svg"
        _check_outputs(spec, store, [path])
        write_file(path, content)
        paths.append(path)
    return paths


def _check_outputs(spec: Spec, store: Store, paths: list[Path]) -> None:
    """A table that is called as its data must not be written over them."""
    inputs: dict[str, PathName | int | None] = {"the store": store.path}
    for data in spec.datasets:
        name, file = (data, file_of(data)) if isinstance(data, str) else (data.name, data.file)
        inputs[f"data set {name!r}"] = file
    for path in paths:
        check_outputs({"the result": path}, inputs)


def _origin(spec: Spec, store: Store) -> str:
    summary = summarise(spec, store)
    states = ", ".join(f"{count} {name}" for name, count in sorted(summary.statuses.items()))
    training, folds, runs = spec.training, spec.folds, store.runs(spec.name)
    scaled_by = "the training rows" if training.scaling_fit == "train" else "all rows"
    lines = [
        f"{summary.n_done} of {summary.n_cells} cells: {states}.",
        f"{folds.count} {folds.rule} folds (seed {folds.seed}); coding {training.coding!r}; "
        f"features scaled to [0, 1] by {scaled_by}.",
    ]
    if runs:
        rows, seconds = sum(run.n_rows for run in runs), sum(run.seconds for run in runs)
        machines = ", ".join(sorted({run.where for run in runs}))
        lines.append(f"{rows} of them run under this name, in {seconds:.0f} s ({machines}).")
    if spec.models:
        lines.append(
            f"{_starts(spec.starts)}; strengths walked from weak to strong, each training starting "
            "from the tree before."
            if spec.grid.walk == "warm"
            else f"{_starts(spec.starts)}, drawn anew for every strength."
        )
    if spec.inner is not None and spec.table == "paper":
        lines.append(
            f"Nested figures: strengths chosen in every fold by {spec.inner.folds} inner folds "
            f"with {_starts(spec.inner.starts)}, without a look at the test fold."
        )
    lines += [f"Left out: {name}, because {why}." for name, why in summary.skipped.items()]
    return "\n".join(lines) + "\n"


def _starts(count: int) -> str:
    return "1 start" if count == 1 else f"{count} starts"


def _verdict_files(spec: Spec, folder: Path) -> tuple[Path, Path]:
    return folder / f"{spec.name}_verdict.csv", folder / f"{spec.name}_nested.csv"


PAPER_MODELS = ("L1", "Linf", "L0loc", "L0glob")


def partial_grid(spec: Spec, summary: RunSummary) -> str:
    """A sentence if less than the paper's grid was run; empty if all of it was."""
    whole, parts = Grid().strengths, []
    if summary.n_done < summary.n_cells:
        parts.append(f"{summary.n_done} of {summary.n_cells} cells are run")
    known = sum(strength in spec.grid.strengths for strength in whole)
    if known < len(whole):
        parts.append(f"{known} of the paper's {len(whole)} strengths")
    models = [name for name in PAPER_MODELS if name in spec.model_names]
    if len(models) == len(spec.model_names) < len(PAPER_MODELS):
        parts.append(f"{len(models)} of its {len(PAPER_MODELS)} models")
    if not parts:
        return ""
    return f"The grid is partial ({', '.join(parts)}); the whole grid may give other figures. "


def _verdicts(verdict: pd.DataFrame, nested: pd.DataFrame, partial: str = "") -> list[str]:
    text = []
    if not verdict.empty:
        reached = int(verdict["reached"].sum())
        sparse = sum(value is True for value in verdict["as_sparse"])
        text.append(
            "\n## Our best model beside the paper's\n\n"
            f"{partial}Within a point of the paper's best model, or above it: "
            f"{reached} of {len(verdict)}. "
            f"At an accuracy within half a point, at least as sparse: {sparse}.\n\n"
            + markdown(verdict)
        )
    if not nested.empty:
        text.append(
            "\n## Model and strength chosen by inner folds, the start of lowest objective\n\n"
            f"Mean accuracy {100 * nested['test_accuracy'].mean():.2f} %, mean number of features "
            f"used {nested['features_used'].mean():.2f}.\n\n" + markdown(nested)
        )
    return text


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
