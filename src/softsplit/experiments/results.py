"""What a finished experiment hands over: its table, verdicts and notes as files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from softsplit.data.named import file_of
from softsplit.experiments.figures import figures
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
