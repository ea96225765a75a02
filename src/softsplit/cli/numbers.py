"""Tables whose target is a number: recognised, fitted and predicted from the command line."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from softsplit.cli.console import INTERRUPTED, echo, heartbeat, print_json, say
from softsplit.cli.options import TABLE
from softsplit.cli.outputs import ending, write_text
from softsplit.cli.parameters import Known, parse_feature_types, tree_parameters
from softsplit.support.messages import shown
from softsplit.support.options import late

if TYPE_CHECKING:
    import pandas as pd
    import typer

    from softsplit.data.files import Table
    from softsplit.fitted.leaf_numbers import LeafNumbers
    from softsplit.support.arrays import FloatArray

MANY_VALUES = 30
"""A target of more different numbers, or of numbers with fractions, is a number and no class."""

# Options that a tree for numbers takes, beside those of its parameters.
OWN = (
    "data", "target", "task", "family", "exposure", "time_column", "model", "report", "encoding",
    "quiet", "text", "as_json",
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What is predicted, by options: ``apart`` is a column of exposures or of times."""

    task: str
    family: str | None
    apart: str | None

    @classmethod
    def of(cls, task: str, family: str | None, exposure: str | None, time: str | None) -> Self:
        """Return what is asked for; one sentence for options that contradict each other."""
        if (task == "survival") != (time is not None):
            raise ValueError("--task survival and --time COLUMN are given together.")
        if time is not None and (family or exposure):
            flag = "--family" if family else "--exposure"
            raise ValueError(f"{flag} is not for --task survival; leave it out.")
        if task == "classes" and (family or exposure):
            raise ValueError("--family and --exposure are for numbers; leave out --task classes.")
        if task == "auto" and (family or exposure):
            task = "number"
        return cls(task, family, time or exposure)

    @property
    def survival(self) -> bool:
        return self.task == "survival"

    def column_apart(self, frame: pd.DataFrame) -> FloatArray | None:
        """Return exposures or times, NaN where missing."""
        from softsplit.variables.contents import number_of, read

        if self.apart is None:
            return None
        if self.apart not in frame.columns:
            raise ValueError(f"the table has no column {shown(self.apart)}.")
        values = read(frame[self.apart], number_of)
        if values is None:
            raise ValueError(f"column {shown(self.apart)} does not hold numbers.")
        return values


def target_numbers(table: Table, target: str, task: str, quiet: bool) -> FloatArray | None:
    """Return the targets, NaN where missing, if the column is a number; None for classes."""
    if task == "classes" or target not in table.frame.columns:
        return None
    import numpy as np

    from softsplit.data.files import with_decimal_points
    from softsplit.variables.contents import number_of, read, truth_of

    column = with_decimal_points(table)[target]
    numbers = None if column.dtype == bool else read(column, number_of)
    if numbers is None and task == "survival":
        numbers = read(column, truth_of)
    if numbers is None or np.all(np.isnan(numbers)):
        if task == "survival":
            raise ValueError(f"column {shown(target)} does not say 1 or 0; --event needs that.")
        if task == "number":
            raise ValueError(f"target {shown(target)} does not hold numbers; say --task classes.")
        return None
    known = numbers[~np.isnan(numbers)]
    many = len(np.unique(known))
    if task == "auto" and many <= MANY_VALUES and np.all(known == np.floor(known)):
        return None
    if task == "auto" and not quiet:
        say(
            f"{shown(target)} holds {many:,} different numbers: the tree predicts a number "
            "(--task classes for classes)"
        )
    return numbers


def fit_numbers(
    context: typer.Context,
    table: Table,
    target: str,
    numbers: FloatArray,
    given: dict[str, Any],
    asked: Asked,
    *,
    model: Path | None,
    report: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Fit a tree to the rows whose target is known, and print it.

    1. Options that only trees for classes have are refused; parameters.
    2. The tree, and what was left out or cut short.
    3. Its file, and what is printed.
    """
    import numpy as np
    import pandas as pd

    # 1. Parameters.
    with heartbeat(quiet, "loading the solver"):
        from softsplit.data.files import with_decimal_points
        from softsplit.estimators.regressor import SoftTreeRegressorCV
        from softsplit.estimators.survival import SoftTreeSurvivalCV
        from softsplit.persistence import dumps_model
        from softsplit.settings.parameter import parameters
        from softsplit.settings.regression import NUMBER_SEARCH, SURVIVAL_SEARCH
        from softsplit.variables import ColumnsLeftOut

    tables = SURVIVAL_SEARCH if asked.survival else NUMBER_SEARCH
    own = {item.name for item in parameters(*tables)} - {"loss"}
    for option in context.command.params:
        name = option.name or ""
        source = context.get_parameter_source(name)
        taken = TABLE[name][0].name in own if name in TABLE else name in OWN
        if not taken and source is not None and source.name == "COMMANDLINE":
            flag = max(option.opts, key=len)
            raise ValueError(
                f"{flag} is for trees that predict classes; leave it out, or say --task classes."
            )
    frame = with_decimal_points(table)
    columns = [str(name) for name in frame.columns]
    chosen = {k: v for k, v in tree_parameters(given, Known(columns)).items() if k in own}
    depth = "auto" if given["depth"] is None else given["depth"]
    chosen |= {"verbose": int(not quiet), "depth": depth}
    kinds = parse_feature_types(given, columns)
    # 2. The tree.
    apart = asked.column_apart(frame)
    known = ~np.isnan(numbers) if apart is None else ~np.isnan(numbers + apart)
    out = [target] if asked.apart is None else [target, asked.apart]
    rows, y = frame.drop(columns=out)[known], numbers[known]
    answers: Any = pd.Series(y, rows.index, name=target)
    more: dict[str, Any] = {}
    if apart is not None and asked.survival:
        answers = pd.DataFrame({asked.apart: apart[known], target: y}, rows.index)
    elif apart is not None:
        more = {"exposure": pd.Series(apart[known], rows.index, name=asked.apart)}
    began = time.perf_counter()
    kind: Any = SoftTreeSurvivalCV if asked.survival else SoftTreeRegressorCV
    if not asked.survival:
        chosen["loss"] = asked.family or ("squared" if apart is None else "poisson")
    tree = kind(**chosen, feature_types=kinds or None)
    with heartbeat(quiet, "fitting"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tree.fit(rows, answers, **more)
    for warning in caught:
        message = warning.message
        if isinstance(message, ColumnsLeftOut):
            say(message.advising("name it with --keep", "--date lists them"))
        elif hasattr(message, "reason"):
            say(str(message.reason))
    # 3. What is kept and printed.
    if model is not None:
        write_text(model, dumps_model(tree))
        if not quiet:
            say(f"the tree is in {model}")
    if report is not None:
        with heartbeat(quiet, "making the report"):
            page = late("softsplit.report.anywhere", "report")
            page(tree, rows, answers, report, name=table.name, **more)
    files = {"model": model, "report": report}
    dropped = int((~known).sum())
    if tree.tree_.numbers.family.log_link:
        _show_rates(tree, tree.score(rows, answers, **more), len(y), dropped, files, as_json)
    else:
        _show(tree, rows, y, dropped, files, as_json)
    if not quiet:
        say(f"done in {time.perf_counter() - began:.0f} s")
    if tree.end_ == "interrupted":
        raise SystemExit(INTERRUPTED)


def report_numbers(
    tree: Any,
    table: Table,
    target: str | None,
    out: Path,
    classes: dict[str, Any],
    *,
    quiet: bool,
) -> dict[str, float]:
    """Write the page of a saved tree and return its figures.

    ``classes`` are options for trees that predict classes, by their names.
    """
    from softsplit.data.files import with_decimal_points

    given = [name for name, value in classes.items() if value is not None]
    if given:
        raise ValueError(f"{given[0]} is for trees that predict classes; leave it out.")
    target = target or tree.tree_.target
    frame = with_decimal_points(table)
    if target not in frame.columns:
        named = "" if target is None else f", and the table has no column {shown(target)}"
        raise ValueError(f"the report needs the numbers of the rows{named}; name it with --target.")
    rows, answers, exposure = _labelled(tree.tree_.numbers, frame, target)
    with heartbeat(quiet, "making the report"):
        page = late("softsplit.report.anywhere", "report")(
            tree, rows, answers, out, name=table.name, exposure=exposure
        )
    figures: dict[str, float] = page.data.figures
    return figures


def _labelled(
    leaves: LeafNumbers, frame: pd.DataFrame, target: str
) -> tuple[pd.DataFrame, Any, FloatArray | None]:
    """Return the rows whose target is known, their targets as for ``fit``, and exposures."""
    import numpy as np
    import pandas as pd

    from softsplit.variables.contents import number_of, read, truth_of

    rows, numbers = frame.drop(columns=target), read(frame[target], number_of)
    if numbers is None and leaves.baseline is not None:
        numbers = read(frame[target], truth_of)
    if numbers is None:
        raise ValueError(f"{shown(target)} does not hold numbers; name the target with --target.")
    known = ~np.isnan(numbers)
    if leaves.totals is None:
        return rows[known], numbers[known], None
    what = "exposure" if leaves.baseline is None else "times"
    if leaves.per is None:
        raise ValueError(f"the tree knows no name of its {what}; make the report in Python.")
    apart = Asked("number", None, leaves.per).column_apart(frame)
    assert apart is not None
    known, rows = known & ~np.isnan(apart), rows.drop(columns=leaves.per)
    if leaves.baseline is None:
        return rows[known], numbers[known], apart[known]
    return rows[known], pd.DataFrame({leaves.per: apart, target: numbers})[known], None


def _show(
    tree: Any, rows: Any, y: FloatArray, dropped: int, files: dict[str, Path | None], as_json: bool
) -> None:
    """Print how far the tree is off, the tree, and facts of it; or all of these as JSON."""
    import numpy as np

    from softsplit.reading.leaf_formulas import grouped
    from softsplit.reading.text import export_text

    held_out = tree.held_out_predictions_
    predicted = tree.predict(rows) if held_out is None else held_out
    told = np.isfinite(predicted)
    off = float(np.mean(np.abs(y - predicted)[told]))
    of_mean = float(np.mean(np.abs(y - y.mean())))
    if as_json:
        errors = {"mean_absolute_error": off, "mean_absolute_error_of_the_mean": of_mean,
                  "training_r2": tree.score(rows, y)}  # fmt: skip
        print_json(_facts(tree, len(y), dropped, files) | errors)
        return
    where = "" if held_out is not None else " on training rows"
    echo(export_text(tree) + "\n")
    if np.isfinite(tree.best_score_):
        echo(f"cross-validated R2   {tree.best_score_:.3f} (used to choose the tree)")
    echo(f"training R2          {tree.score(rows, y):.3f}")
    if dropped:
        echo(f"rows not used        {dropped:,} without a number")
    said = (
        f"typically off by {grouped(off, 2)}{where}; always saying the mean: {grouped(of_mean, 2)}"
    )
    ending([said], *_columns(tree), files)


def _show_rates(
    tree: Any, score: float, n_rows: int, dropped: int, files: dict[str, Path | None], as_json: bool
) -> None:
    """Print what the tree explains, the tree, and facts of it; or all of these as JSON."""
    from softsplit.reading.text import export_text

    held_out, survival = tree.best_score_, tree.tree_.numbers.baseline is not None
    kind = "concordance" if survival else "deviance_explained"
    if as_json:
        print_json(_facts(tree, n_rows, dropped, files) | {f"training_{kind}": score})
        return
    echo(export_text(tree))
    if dropped:
        echo(f"\nrows not used        {dropped:,} without a number")
    said = [f"training {kind.replace('_', ' ')} {score:.3f}"]
    if held_out == held_out:  # not NaN
        said += [f"explains {100 * held_out:.0f} % of the deviance of rows that the folds held out"]
    ending(said, *_columns(tree), files)


def _columns(tree: Any) -> tuple[int, int]:
    """How many columns are in use, and how many there are."""
    return len(tree.selected_features_), tree.tree_.table_coding.n_candidates


def _facts(tree: Any, n_rows: int, dropped: int, files: dict[str, Path | None]) -> dict[str, Any]:
    """What programs are told of every tree for numbers."""
    model, score = tree.tree_, tree.best_score_
    names = [model.column_names[j] for j in tree.selected_features_]
    facts = {
        "rows": n_rows, "dropped_rows": dropped, "features": model.table_coding.n_candidates,
        "target": model.target, "selected_features": names,
        "depth": tree.best_params_["depth"], "strength": tree.best_params_["strength"],
        "interrupted": tree.end_ == "interrupted",
        "files": {name: str(path) for name, path in files.items() if path is not None},
    }  # fmt: skip
    return facts | ({"cross_validated_score": score} if score == score else {})


def number_answers(
    tree: Any, X: FloatArray, confidence: float | None, exposure: FloatArray | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what is written about each row, and the names of its columns."""
    predicted = tree.calls(X)
    columns = {"prediction": predicted}
    if exposure is not None:  # the prediction is a rate
        columns["expected"] = predicted * exposure
    if tree.numbers.baseline is not None:
        columns["median"] = tree.numbers.baseline.medians(predicted)
    if confidence is not None:
        low, high = tree.numbers.bounds(predicted, tree.arrive(X), confidence)
        columns |= {"low": low, "high": high}
    lines = zip(*(values.tolist() for values in columns.values()), strict=True)
    answers = [
        {"row": i, **dict(zip(columns, line, strict=True))} for i, line in enumerate(lines, 1)
    ]
    return answers, ["row", *columns]
