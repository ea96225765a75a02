"""What a finished experiment hands over: its table, verdicts and notes as files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from softsplit.experiments.documents import markdown, write_table
from softsplit.experiments.figures import write_figures
from softsplit.experiments.runner import summarise
from softsplit.experiments.spec import Spec
from softsplit.experiments.store import Store
from softsplit.experiments.tables import (
    make_table,
    nested_verdict,
    paper_verdict,
    peer_summary,
    spec_rows,
)


def write_results(spec: Spec, store: Store, folder: Path) -> list[Path]:
    """The table as CSV, Markdown and LaTeX; the Markdown says how it came about."""
    table = make_table(spec, store)
    paths = write_table(table, folder, spec.name, spec.title)
    extra = [paths[1].read_text(encoding="utf-8"), "\n", _origin(spec, store)]
    if spec.table == "peers":
        extra.append(
            "\n## Means over the data sets\n\nSeconds of a tree are those of all trainings behind "
            "the choice of its strength.\n\n" + markdown(peer_summary(table))
        )
    if spec.table == "paper":
        frame = spec_rows(spec, store)
        extra += _verdicts(paper_verdict(frame, spec), nested_verdict(frame), folder, spec)
        paths += [p for p in _verdict_files(spec, folder) if p.is_file()]
    paths[1].write_text("".join(extra), encoding="utf-8")
    return paths


def write_plots(spec: Spec, store: Store, folder: Path) -> list[Path]:
    """The figures the spec asks for."""
    if not spec.figures:
        raise ValueError(f"experiment {spec.name!r} has no figures; its table says it all.")
    return write_figures(spec, spec_rows(spec, store), folder)


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


def _verdicts(verdict: pd.DataFrame, nested: pd.DataFrame, folder: Path, spec: Spec) -> list[str]:
    text = []
    for path, table in zip(_verdict_files(spec, folder), (verdict, nested), strict=True):
        if not table.empty:
            table.to_csv(path, index=False, lineterminator="\n")
    if not verdict.empty:
        reached = int(verdict["reached"].sum())
        sparse = sum(value is True for value in verdict["as_sparse"])
        text.append(
            "\n## Our best model beside the paper's\n\n"
            f"Within a point of the paper's best model, or above it: {reached} of {len(verdict)}. "
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
