"""``softsplit report``: the page about a tree that was fitted before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softsplit.cli import options
from softsplit.cli.console import INTERRUPTED, echo, print_json, say
from softsplit.cli.inputs import check_files, load, read, write_text
from softsplit.support.messages import visible

if TYPE_CHECKING:
    from softsplit.data.files import Table
    from softsplit.data.schema import InputSchema, Learned

EPILOG = "Example: softsplit report tree.json patients.csv --out tree.html"


def report(
    model: options.Model,
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("report.html"),
    missing: options.RowMissingOption = None,
    encoding: options.Encoding = None,
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Write the report of a tree: one HTML file with an explorer along the strength path.

    DATA is the table that the tree was fitted to, with its target. The page holds the tree, its
    accuracy beside two plain methods, right and wrong answers, features, and a slider over trees
    of other strengths. It needs no network.
    """
    check_files({"--out": out}, table=data, model=model)
    tree, schema = load(model)
    table = read(data, encoding, quiet)
    rows = _rows(table, tree, schema, missing.value if missing else None)
    from softsplit.report import render_page
    from softsplit.report.rivals import make_subject, walk_path

    tell = (lambda _: None) if quiet else say
    path = walk_path(tree, rows, seed=seed, jobs=jobs or -1, say=tell)
    subject = make_subject(table.name, rows, path, (("Tree", f"read from {visible(model.name)}"),))
    write_text(out, render_page(subject))
    if as_json:
        print_json(
            {
                "report": str(out),
                "points": len(path.trees),
                "chosen": path.chosen,
                "accuracy": _dict(subject.accuracy(path.chosen)),
                "majority": _dict(subject.baseline("majority")),
                "logistic": _dict(subject.baseline("logistic")),
            }
        )
    else:
        echo(visible(out))
    if path.interrupted:
        say("interrupted: accuracies in the report are incomplete.")
        raise typer.Exit(INTERRUPTED)


def _dict(found: Any) -> Any:
    return None if found is None else found._asdict()


def _rows(table: Table, tree: Any, schema: InputSchema, missing: str | None) -> Learned:
    """The table coded as the tree's was, with its classes."""
    import numpy as np

    from softsplit.cli.inputs import with_options
    from softsplit.data.schema import Learned, labels_of

    if len(table.frame) == 0:
        raise ValueError("the table has no rows.")
    rule: Any = missing or schema.missing
    try:
        labels = labels_of(table, schema.target, [str(c) for c in tree.classes_])
        coded = schema.code(table, None, rule)
    except ValueError as error:
        raise ValueError(with_options(str(error), training=False)) from None
    kept = coded.complete & np.array([label is not None for label in labels])
    if rule == "error" and not kept.all():
        raise ValueError(
            f"column {schema.target!r} has no class in {int((~kept).sum())} rows; go on without "
            "them by --missing drop."
        )
    lost = sorted({str(c) for c in tree.classes_} - set(labels[kept].tolist()))
    if lost:
        raise ValueError(f"no row is of class {lost[0]!r}; the report needs rows of every class.")
    wanted = [c.name for c in schema.columns]
    counts = table.frame[[*wanted, schema.target]].isna().sum()
    missing_counts = {str(c): int(n) for c, n in counts.items() if n}
    return Learned(
        schema, coded.X[kept], labels[kept].astype(str), missing_counts, int((~kept).sum())
    )
