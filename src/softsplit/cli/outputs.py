"""Output files of commands, checked before the work and written atomically; figures of reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from softsplit.cli.console import echo
from softsplit.support.messages import visible
from softsplit.support.output_files import check_outputs, write_file
from softsplit.support.parallel import n_threads
from softsplit.support.processes import end, may_start_processes, process_pool
from softsplit.support.row_budgets import ROWS

if TYPE_CHECKING:
    from softsplit.data.learning import LabelledRows
    from softsplit.report import Fitted, ReportData


def load_baselines() -> None:
    """Import what trains plain methods: in the worker only, since it takes two seconds."""
    from softsplit.selection.baselines import be_worker

    be_worker()


# Cells of a table from which training plain methods takes longer than importing them.
WORKER_CELLS = 20_000

# File descriptor that ``-`` stands for.
STANDARD_INPUT = 0


def write_text(path: Path, text: str) -> None:
    """Write a file atomically."""
    write_file(path, text.encode("utf-8", errors="replace"))


def check_files(
    outputs: dict[str, Path | None], *, table: str | None = None, model: Path | None = None
) -> None:
    """Raise, before any work is done, if an output cannot be written or is also an input."""
    read_from = STANDARD_INPUT if table == "-" else table
    check_outputs(outputs, {"the table that is read": read_from, "the model that is read": model})


def baseline_worker(
    context: typer.Context, rows: LabelledRows, jobs: int | None
) -> Executor | None:
    """Start a worker for the plain methods of a report; it ends with the command.

    Return None for one thread, for small tables, whose plain methods take less time than their
    import, and for many rows, where trees need all cores.
    """
    small = rows.matrix.size < WORKER_CELLS
    if jobs == 1 or small or len(rows.y) >= ROWS.held_out or not may_start_processes():
        return None
    worker = process_pool(1, load_baselines)
    worker.submit(int)  # a pool has no process before there is something to do
    context.call_on_close(partial(end, worker))
    return worker


def write_report(
    path: Path, *arguments: Any, jobs: int | None, say: Callable[[str], None], **asked: Any
) -> ReportData:
    """Write the report of a tree; the other arguments are those of ``walk_path``."""
    from softsplit.report.comparison import walk_path
    from softsplit.report.document import render_report

    report_data = walk_path(*arguments, n_jobs=jobs or n_threads(None), say=say, **asked)
    say("drawing the page")
    write_text(path, render_report(report_data))
    return report_data


def tree_object(tree: Any) -> dict[str, Any]:
    """Return what a tree of classes is and how it was trained, for JSON output."""
    return {
        "classes": [str(label) for label in tree.classes_],
        "depth": tree.tree_.topology.depth,
        "selected_features": [tree.tree_.column_names[j] for j in tree.selected_features_],
        "local_strength": float(tree.local_strength),
        "global_strength": float(tree.global_strength),
        "scale": tree.scale,
        "loss": tree.loss,
    }


def figures_object(report_data: ReportData) -> dict[str, Any]:
    """Return the metrics of the chosen tree and of the baselines, for JSON output."""
    from softsplit.selection.baselines import BASELINES

    chosen, classes = report_data.chosen, report_data.classes
    judged = {"tree": report_data.metrics(chosen)}
    judged |= {name: report_data.baseline_metrics(name) for name in BASELINES}
    by_class = {name: report_data.class_metrics(chosen, k) for k, name in enumerate(classes)}
    known = {name: metrics for name, metrics in by_class.items() if metrics is not None}
    return {"figures": as_object(judged), "by_class": as_object(known)}


def quality(fitted: Fitted, rows: LabelledRows, n_used: int) -> list[str]:
    """Say what the columns that a tree does without are worth, and how often it is right."""
    import numpy as np

    search = fitted.search
    held_out = None if search is None or search.scoring is not None else fitted.score
    right = held_out
    if right is None:
        predicted = fitted.tree.tree_.predict_index(rows.coded_as(fitted.tree.tree_.coding).matrix)
        right = float(np.mean(fitted.tree.classes_[predicted] == rows.y))
    labels, counts = np.unique(rows.y, return_counts=True)
    often = visible(labels[np.argmax(counts)])
    said = (
        f"right on {100 * right:.0f} of 100 {'training' if held_out is None else 'new'} cases; "
        f"always guessing {often}: {100 * counts.max() / counts.sum():.0f} of 100"
    )
    if search is None or held_out is None or "mean_test_log_loss" not in search.cv_results_:
        return [said]
    compared = search.cv_results_
    finished = compared["n_splits_done"] == compared["n_splits_done"].max()
    best = np.argmin(np.where(finished, compared["mean_test_log_loss"], np.inf))
    most, score = round(float(compared["mean_n_features"][best])), compared["mean_test_score"][best]
    if most <= n_used:
        return [said]
    more = f"{most} columns: {100 * score:.0f} of 100; {n_used}: {100 * right:.0f} of 100"
    return [f"{more}; this is the tree of {n_used}", said]


def ending(said: list[str], n_used: int, n_columns: int, files: Mapping[str, Path | None]) -> None:
    """Print the last lines of a fit: how good, how many columns, where the report is."""
    keep = "" if files.get("model") or files["report"] else ", --model tree.json keeps the tree"
    report = files["report"]
    where = f"--report tree.html makes one{keep}" if report is None else visible(report)
    for line in ["", *said, f"columns used: {n_used} of {n_columns}", f"report: {where}"]:
        echo(line)


def figures_text(report_data: ReportData) -> dict[str, str]:
    """Return the metrics of the chosen tree on held-out rows, the leading one first, as text."""
    from softsplit.report.measures import class_sentence, refer_sentence, verdict

    judged = report_data.metrics(report_data.chosen)
    assert judged is not None
    metrics = {"accuracy": judged.accuracy, "balanced accuracy": judged.balanced}
    if report_data.rare is not None:
        metrics = dict(reversed(metrics.items()))
    facts = {
        f"{name} on held-out rows": f"{100 * value.value:.1f} % (95 % interval "
        f"{100 * value.low:.1f} to {100 * value.high:.1f})"
        for name, value in metrics.items()
    }
    if report_data.undertrained:
        facts["beware"] = verdict(report_data)
    referred = refer_sentence(report_data, report_data.refer)
    if referred is not None:
        facts[f"at {100 * report_data.refer:g} % confidence"] = referred
    classes = class_sentence(report_data, report_data.chosen)
    return facts if classes is None else facts | {"classes": classes}


def as_object(value: Any) -> Any:
    """Return figures, such as an accuracy with its confidence interval, for JSON output."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif hasattr(value, "__dict__"):
        value = vars(value)
    if isinstance(value, dict):
        return {name: as_object(part) for name, part in value.items()}
    return value
