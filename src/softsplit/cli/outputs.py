"""Files that commands write: checked before the work, and written as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from softsplit.cli.console import say
from softsplit.support.output_files import check_outputs, write_file

if TYPE_CHECKING:
    from softsplit.data.learning import LabelledRows
    from softsplit.estimators.classifier import SoftTreeClassifier
    from softsplit.report import Subject
    from softsplit.report.intervals import Interval

STANDARD_INPUT = 0


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    write_file(path, text.encode("utf-8", errors="replace"))


def check_files(
    outputs: dict[str, Path | None], *, table: str | None = None, model: Path | None = None
) -> None:
    """Refuse, before any work is done, files that cannot be written or are read as well."""
    read_from = STANDARD_INPUT if table == "-" else table
    check_outputs(outputs, {"the table that is read": read_from, "the model that is read": model})


def write_report(
    path: Path,
    name: str,
    rows: LabelledRows,
    tree: SoftTreeClassifier,
    story: tuple[tuple[str, str], ...],
    *,
    seed: int,
    jobs: int | None,
    quiet: bool,
) -> tuple[Subject, bool]:
    """Write the report of a tree; what it was made of, and whether Ctrl-C cut it short."""
    from softsplit.report.document import render_report
    from softsplit.report.rivals import make_subject, walk_path

    tell = (lambda _: None) if quiet else say
    walked = walk_path(tree, rows, seed=seed, n_jobs=jobs or -1, say=tell)
    subject = make_subject(name, rows, walked, story)
    write_text(path, render_report(subject))
    return subject, walked.interrupted


def as_object(interval: Interval | None) -> dict[str, Any] | None:
    """An accuracy with its interval, as it is printed in JSON."""
    return None if interval is None else interval._asdict()
