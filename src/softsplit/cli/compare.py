"""``softsplit compare``: two trees side by side on the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softsplit.cli import options
from softsplit.cli.console import echo, print_json, say
from softsplit.cli.inputs import known_classes, load_stored, read, rows_for
from softsplit.support.messages import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from softsplit.advice.differences import Comparison
    from softsplit.data.files import Table
    from softsplit.fitted.model import TreeModel

# Exit code where more rows change class than are allowed.
CHANGED = 1

EPILOG = (
    "Example: softsplit compare old.json new.json data.csv. Exit codes: 0 every row keeps its "
    "class (or no more than --allow change), 1 more rows change, 2 an error."
)


def compare(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Model file of the tree before.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Model file of the tree after.")],
    data: options.Data,
    target: Annotated[
        str | None, options.target_option("Column with the classes, if the models do not name it.")
    ] = None,
    allow: Annotated[
        float,
        typer.Option("--allow", min=0.0, max=1.0, help="Share of the rows that may change class."),
    ] = 0.0,
    encoding: options.Encoding = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Compare two trees: questions that changed, rows whose class changes, figures side by side.

    Figures (accuracy, balanced accuracy, log-loss, and the area under the ROC curve of two classes;
    of a number R2 and the mean absolute error) need the targets of the rows. Each tree reads the
    columns that it uses.
    """
    from softsplit.advice.differences import compare_trees

    # 1. The rows, as each tree reads them.
    before, after = (load_stored(path, numbers=True) for path in (old, new))
    table = read(data, encoding, quiet)
    used = [
        {tree.tree_.column_names[j] for j in tree.tree_.selected_columns}
        for tree in (before, after)
    ]
    more = not used[1] <= used[0]  # else what is strange in the rows would be said twice
    rows = [rows_for(before, table, target).X, rows_for(after, table, target, remarks=more).X]
    if not len(rows[0]):
        raise ValueError("the table has no rows to compare the trees on.")
    # 2. Figures need classes that both trees know.
    labels = _labels(before.tree_, after.tree_, table, target, quiet)
    comparison = compare_trees(before.tree_, after.tree_, rows[0], rows[1], labels)
    if as_json:
        print_json(_as_object(comparison))
    else:
        echo(str(comparison))
    if comparison.changed_share > allow:
        raise typer.Exit(CHANGED)


def _labels(
    before: TreeModel, after: TreeModel, table: Table, target: str | None, quiet: bool
) -> NDArray[Any] | None:
    """Positions of the classes of the rows, -1 for those that have none; None if unknown.

    Of a number its values, NaN for those that are missing.
    """
    import numpy as np

    from softsplit.variables.contents import text_of

    if before.target is None and after.target in table.frame.columns:
        target = target or after.target
    labels = known_classes(table, before, target)[1]
    if labels is None or before.numbers is not None:
        return labels
    names = [list(map(text_of, tree.labels)) for tree in (before, after)]
    if names[0] != names[1]:
        if not quiet:
            say("the trees have different classes: no figures are compared.")
        return None
    strange = int(np.sum(labels < 0))
    if not quiet and strange:
        say(f"not in the figures: {counted(strange, 'row')} of a class that the trees do not know.")
    return labels


def _as_object(comparison: Comparison) -> dict[str, Any]:
    return {
        "rows": len(comparison.before),
        "changed": [
            {
                "row": int(i) + 1,
                "before": str(comparison.before[i]),
                "after": str(comparison.after[i]),
            }
            for i in comparison.changed
        ],
        "figures": {name: {"before": a, "after": b} for name, (a, b) in comparison.figures.items()},
        "questions": comparison.questions,
        "monotone": [
            {"effect": effect, "before": before, "after": after}
            for effect, before, after in comparison.monotone
        ],
    }
