"""Conversion of command arguments into tables, models, coded rows, and the weights, costs and
minimum rates of classes (CLASS=NUMBER, or a number); options of the table as they were given."""

from __future__ import annotations

import math
import re
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softsplit.cli.console import OPTIONS, heartbeat, say
from softsplit.cli.wording import as_options
from softsplit.support.messages import AdvisedError, counted, nearest, shown

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from softsplit.advice.limits import AdviceLimits
    from softsplit.data.files import Table
    from softsplit.data.learning import LabelledRows
    from softsplit.estimators.classifier import SoftTreeClassifier
    from softsplit.persistence.saved import SavedTree
    from softsplit.variables import CodedRows

OF_TABLE = frozenset(
    ("drop", "keep", "categorical", "date", "kind", "groups", "encoding", "class_weight", "effort")
)
"""Options that settings of a tree do not hold, and that a fit of the same tree needs."""


def read(source: str, encoding: str | None = None, quiet: bool = False) -> Table:
    """Read a table; announce it first, since importing pandas takes a moment."""
    said = f"reading {'standard input' if source == '-' else source}"
    if not quiet:
        say(said)
    with heartbeat(quiet, said):
        from softsplit.data.files import read_table

        table = read_table(source, encoding=encoding)
    for note in table.notes:
        say(note)
    return table


def training_rows(
    table: Table,
    target: str,
    quiet: bool = False,
    kinds: Sequence[str] | None = None,
    apart: Sequence[str] = (),
    **columns_by_kind: Sequence[str] | None,
) -> LabelledRows:
    """Return the coded rows of a training table.

    ``kinds`` are the texts COLUMN=KIND of --kind, ``columns_by_kind`` the lists of column names
    given for each kind (--drop, --date, ...), and ``apart`` columns that are kept as they are too.
    """
    with heartbeat(quiet, "looking at the columns"), warnings.catch_warnings(record=True) as caught:
        from softsplit.data.learning import learn
        from softsplit.variables import ColumnsLeftOut

        warnings.simplefilter("always", ColumnsLeftOut)
        names = list(map(str, table.frame.columns))
        rows = learn(table, target, said_kinds(names, kinds, columns_by_kind), apart)
    for warning in caught:
        if isinstance(warning.message, ColumnsLeftOut):
            say(warning.message.advising(_advice_on_columns(warning.message.nearly_dates)))
    if rows.dropped_rows:
        say(
            f"rows without a class in column {shown(target)}: {rows.dropped_rows:,}; they are not "
            "used, fill the classes in to train on them."
        )
    if not quiet:
        variables = counted(rows.coding.n_candidates, "variable")
        say(f"{counted(len(rows.y), 'row')}, {variables}; loading the solver")
    return rows


def _advice_on_columns(nearly_dates: str | None) -> str:
    """Return what to do about columns left out; ``nearly_dates`` is one with a few other cells."""
    if nearly_dates is None:
        return "name it with --keep"
    return (
        "name it with --keep; correct the cells that are not dates or leave them empty "
        f"(--date {shlex.quote(nearly_dates)} lists them)"
    )


def said_kinds(
    names: Sequence[str],
    kinds: Sequence[str] | None,
    columns_by_kind: Mapping[str, Sequence[str] | None],
) -> dict[str, str]:
    """Return the kind of each column that some option names; ``names`` are all columns."""
    from softsplit.data.learning import split_names
    from softsplit.variables.coding import refuse_kind

    said = [
        (name, kind)
        for kind, listed in columns_by_kind.items()
        for name in split_names(listed or (), names)
    ]
    for text in kinds or ():
        fitting = [name for name in names if text.startswith(f"{name}=")]
        if not fitting:
            raise ValueError(
                f"--kind {shown(text)} must be COLUMN=KIND, with a column of the table."
            )
        name = max(fitting, key=len)
        kind = text[len(name) + 1 :].strip()
        refuse_kind(name, kind, "--kind")
        said.append((name, kind))
    found: dict[str, str] = {}
    for name, kind in said:
        if found.setdefault(name, kind) != kind:
            raise ValueError(f"column {shown(name)} cannot be {found[name]} and {kind} at once.")
    return found


def grouped(rows: LabelledRows, listed: Sequence[str] | None) -> list[list[str]] | None:
    """Return the groups of --groups as lists of column names; one error names all absent ones."""
    from softsplit.data.learning import split_names

    names = rows.coding.names
    groups = [split_names([entry], names) for entry in listed or ()]
    absent = [name for group in groups for name in group if name not in names]
    if absent:
        text = ", ".join(shown(name, 20) for name in absent[: OPTIONS.columns])
        raise ValueError(
            f"--groups names {text}, which is not a column of the table other than the target."
        )
    return groups or None


def column_rules(
    names: Sequence[str],
    required: Sequence[str] | None,
    forbidden_together: Sequence[str] | None,
    at_most_one: Sequence[str] | None,
    feature_cost: Sequence[str] | None,
) -> dict[str, Any]:
    """Return --required, --forbidden-together, --at-most-one and --feature-cost as parameters.

    ``names`` are all columns; they may hold commas.
    """
    from softsplit.data.learning import split_names

    costs: dict[str, float] = {}
    for text in feature_cost or ():
        name, sign, value = text.rpartition("=")
        if not sign or not name:
            raise ValueError(
                f"--feature-cost {shown(text)} must be COLUMN=NUMBER, for instance mri=30."
            )
        if name in costs:
            raise ValueError(f"--feature-cost names {shown(name)} twice; name it once.")
        costs[name] = _number("--feature-cost", value)
    wanted = split_names(required, names) if required else []
    pairs = [split_names([one], names) for one in forbidden_together or ()]
    sets = [split_names([one], names) for one in at_most_one or ()]
    if names:
        _refuse_absent("--required", wanted, names)
        _refuse_absent("--forbidden-together", [name for pair in pairs for name in pair], names)
        _refuse_absent("--at-most-one", [name for members in sets for name in members], names)
        _refuse_absent("--feature-cost", list(costs), names)
    return {
        "required": wanted or None,
        "forbidden_together": pairs or None,
        "at_most_one": sets or None,
        "feature_costs": costs or None,
    }


def _refuse_absent(option: str, given: Sequence[str], names: Sequence[str]) -> None:
    """Names of an option that the table does not have; the target is no such column."""
    absent = next((name for name in given if name not in names), None)
    if absent is not None:
        close = nearest(absent, names)
        hint = f"did you mean {close}?" if close else "name columns other than the target."
        raise ValueError(
            f"{option} names {shown(absent, 40)}, which is not a column of the table; {hint}"
        )


def load(path: Path, quiet: bool = False) -> SoftTreeClassifier:
    """Load the estimator of a model file, and with it the training code."""
    with heartbeat(quiet, f"reading {path}"):
        from softsplit.persistence.files import load_model

        try:
            found: SoftTreeClassifier = _load(path, load_model)
        except ImportError as error:  # the command says which package it needs
            raise (error.__cause__ or error) from None
    return found


def load_stored(path: Path) -> SavedTree:
    """Load the tree of a model file, without importing the training code."""
    from softsplit.persistence.files import load_tree

    found: SavedTree = _load(path, load_tree)
    return found


def _load(path: Path, how: Callable[[Path], Any]) -> Any:
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; give a model file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no model file {str(path)!r}.")
    from softsplit.persistence.reader import ModelFileError

    try:
        return how(path)
    except ModelFileError as error:
        why = str(error).removesuffix(".")
        why = "" if "not valid JSON" in why else f" that can be read ({why})"
        raise ValueError(
            f"{str(path)!r} is not a softsplit model file{why}; pass one written by softsplit fit "
            "--model or save_model."
        ) from None


def rows_for(
    tree: SavedTree, table: Table, target: str | None = None, *, told: bool = True
) -> CodedRows:
    """Return the rows of a table in the coding of the tree; unused columns may be absent.

    ``target`` is the column with the classes, if the tree does not know it.
    Unless ``told`` is false, messages count values that are unlike all training rows; ``explain``
    says of each row how they are treated.
    """
    from softsplit.data.files import with_decimal_points
    from softsplit.data.learning import features_of
    from softsplit.fitted.ranges import far_columns

    model = tree.tree_
    coding = replace(model.table_coding, named=tree.named)
    needed = model.selected_variables.tolist()
    frame = with_decimal_points(table)
    features = features_of(frame, target or model.target)
    rows = coding.code(features, needed if coding.named else None)
    if not told:
        return rows
    used = [(coding.variables[i], rows.cells[i]) for i in needed]
    new = {v.name: v.unseen(cells) for v, cells in used}
    missing = {v.name: cells.missing for v, cells in used if not v.has_missing}
    _say_counts(new, "have a value of {} that was not seen in training")
    _say_counts(missing, "have a missing value of {}, as no training row had")
    for one in far_columns(model, rows.X):
        _say_counts({one.name: one.rows}, f"have a value of {{}} {one.training}")
    return rows


def _say_counts(rows_by_column: Mapping[str, NDArray[np.bool_]], sentence: str) -> None:
    """Say for each column how many of its rows are marked, if any."""
    counts = {name: int(rows.sum()) for name, rows in rows_by_column.items() if rows.any()}
    for name, count in list(counts.items())[: OPTIONS.columns]:
        verb = sentence if count > 1 else sentence.replace("have", "has", 1)
        said = f"{count:,} row{'s' if count > 1 else ''} {verb.format(shown(name, 40))}"
        say(f"{said}; softsplit explain shows how it is treated.")
    if len(counts) > OPTIONS.columns:
        say(f"{len(counts) - OPTIONS.columns} more columns have such values.")


def groups_by(table: Table, target: str, by: str | None) -> tuple[str, pd.Categorical] | None:
    """Return the column of --by and the group of each row that has a class; None without it."""
    if by is None:
        return None
    if by not in table.frame.columns:
        raise ValueError(f"--by names {shown(by)}, which is not a column of the table.")
    from softsplit.data.learning import class_texts
    from softsplit.report.groups import group_names

    kept = [label is not None for label in class_texts(table.frame[target])]
    return by, group_names(table.frame[by][kept])


def advice_limits(
    tree: SavedTree,
    fixed: Sequence[str] | None,
    ranges: Sequence[str] | None,
    only_decrease: Sequence[str] | None,
    only_increase: Sequence[str] | None,
) -> AdviceLimits:
    """Return limits for advice from lists of columns and from texts COLUMN=LOW:HIGH."""
    from softsplit.advice.limits import AdviceLimits
    from softsplit.data.learning import split_names
    from softsplit.variables.variable import CATEGORY

    coding = tree.tree_.table_coding
    kinds = {variable.name: variable.kind for variable in coding.variables}
    names = [*coding.names, *kinds]
    found: dict[str, Any] = {}
    for text in ranges or ():
        fitting = [name for name in names if text.startswith(f"{name}=")]
        name = max(fitting, key=len, default="")
        value = text[len(name) + 1 :]
        if kinds.get(name) == CATEGORY:
            found[name] = split_names([value], ())
        elif fitting and ":" in value:
            low, _, high = value.partition(":") if value.count(":") == 1 else _halves(value)
            found[name] = (low.strip() or None, high.strip() or None)
        else:
            raise ValueError(
                f"--range {shown(text)} must be COLUMN=LOW:HIGH, with a column of the tree."
            )
    listed = [split_names(given or (), names) for given in (fixed, only_decrease, only_increase)]
    return AdviceLimits.of(listed[0], found, listed[1], listed[2])


def _halves(text: str) -> tuple[str, str, str]:
    """Split two times, which have colons themselves, at the colon in the middle."""
    parts = text.split(":")
    half = len(parts) // 2
    return ":".join(parts[:half]), ":", ":".join(parts[half:])


def given_options(context: Any, names: Iterable[str]) -> str:
    """Return the options among ``names`` that were given, as words for a shell."""
    words = []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name)
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            value = context.params[parameter.name]
            for one in value if isinstance(value, list | tuple) else [value]:
                words += [max(parameter.opts, key=len), str(getattr(one, "value", one))]
    return shlex.join(words)


@contextmanager
def option_advice() -> Iterator[None]:
    """Rephrase errors: options of the command instead of Python arguments."""
    try:
        yield
    except AdvisedError as error:
        raise ValueError(as_options(error.advising(_advice(error)))) from None
    except ValueError as error:
        told = as_options(str(error))
        if told == str(error):
            raise
        raise ValueError(told) from None


def _advice(error: AdvisedError) -> str:
    from softsplit.data import dataset as errors
    from softsplit.fitted.conformal import NoHeldOutRowsError

    match error:
        case NoHeldOutRowsError():
            return "let softsplit fit choose it, without --depth and --strength together"
        case errors.OtherRows():
            return (
                "give that table, and these rows with --held-out, or judge the tree on them with "
                "softsplit check"
            )
        case errors.TooFewToChoose():
            return "give them with --depth and --strength, or more rows"
        case errors.UnknownTarget():
            return "name it with --target"
    return error.advice


def class_weights(given: Sequence[str] | None, classes: Sequence[str]) -> Any:
    """Return the class weights: None, "balanced", or a number for each class."""
    if not given:
        return None
    if list(given) == ["balanced"]:
        return "balanced"
    return {**dict.fromkeys(classes, 1.0), **_by_class("--class-weight", given, classes)}


def named_columns(constraints: Any, fairness: Any) -> list[Any]:
    """The columns that requirements on rates name."""
    if constraints is None and fairness is None:
        return []
    from softsplit.formulations.rates import named_columns as named

    return named(constraints, fairness)


RATE = re.compile(
    r"(?P<of>.+?)(?: on (?P<column>.+?)\s*(?P<where>=|<=|>)\s*(?P<value>.+?))?"
    r"(?: given (?P<given>.+?))?\s*(?P<side><=|>=)\s*(?P<bound>[^<>=]+)"
)


def fairness_of(
    names: Sequence[str],
    parity: Sequence[str] | None,
    equal_opportunity: Sequence[str] | None,
    equalized_odds: Sequence[str] | None,
    favourable: str | None,
) -> list[Any] | None:
    """Return the requirements of the options that compare groups; None if there are none."""
    from softsplit.formulations.rates import EqualizedOdds, EqualOpportunity, Parity

    found: list[Any] = []
    for option, kind, given in (
        ("--parity", Parity, parity),
        ("--equal-opportunity", EqualOpportunity, equal_opportunity),
        ("--equalized-odds", EqualizedOdds, equalized_odds),
    ):
        for text in given or ():
            name, _, bound = text.rpartition("=")
            cut = None
            if name not in names and ">" in name:
                name, _, number = name.rpartition(">")
                name, cut = name.strip(), _number(option, number, -math.inf)
            if name not in names:
                raise ValueError(
                    f"{option} {shown(text)} names no column of the table; write it as "
                    "COLUMN=BOUND."
                )
            found.append(kind(name, _share(option, bound), of=favourable, cut=cut))
    if favourable is not None and not found:
        raise ValueError("--favourable is for --parity and the like; give one of them.")
    return found or None


def rate_constraints(given: Sequence[str] | None) -> list[Any] | None:
    """Return the bounds of --rate; None if there are none."""
    from softsplit.formulations.rates import RateConstraint

    found = []
    for text in given or ():
        parts = RATE.fullmatch(text.strip())
        if parts is None:
            raise ValueError(
                f"--rate {shown(text)} is not understood; write it as 'CLASS on COLUMN=VALUE <= "
                "NUMBER' or 'CLASS on COLUMN > NUMBER <= NUMBER'."
            )
        rows: tuple[Any, ...] | None = None
        if parts["where"] == "=":
            rows = parts["column"], parts["value"]
        elif parts["where"] is not None:
            number = _number("--rate", parts["value"], -math.inf)
            rows = parts["column"], parts["where"], number
        side = "at_most" if parts["side"] == "<=" else "at_least"
        bound = _share("--rate", parts["bound"])
        found.append(RateConstraint(rows, parts["of"], given=parts["given"], **{side: bound}))
    return found or None


def minimum_rates(given: Sequence[str] | None, classes: Sequence[str]) -> Any:
    """Return the minimum true-class rates: "auto", one number for all, or one for each class."""
    if not given:
        return "auto"
    if len(given) == 1 and "=" not in given[0]:
        return _share("--min-rate", given[0])
    named = _by_class("--min-rate", given, classes, _share)
    return {**dict.fromkeys(classes, 0.0), **named}


def monotone_effects(given: Sequence[str] | None) -> dict[str, Any] | None:
    """Return the mapping that ``monotone`` takes, from COLUMN=+, COLUMN=- or COLUMN=CLASS:+."""
    found: dict[str, Any] = {}
    for text in given or ():
        column, equals, wanted = text.rpartition("=")
        label, colon, sign = wanted.rpartition(":")
        if not equals or not column or sign not in ("+", "-") or bool(label) != bool(colon):
            raise ValueError(
                f"--monotone {shown(text)} names no effect; write COLUMN=+, COLUMN=- or "
                "COLUMN=CLASS:+."
            )
        if column in found and not (label and isinstance(found[column], dict)):
            raise ValueError(f"--monotone names column {shown(column)} twice; name it once.")
        if label:
            found.setdefault(column, {})[label] = sign
        else:
            found[column] = sign
    return found or None


def cost_matrix(given: Sequence[str] | None, classes: Sequence[str]) -> Any:
    """Return the cost matrix: the given cost for each error on a named true class, 1 for others."""
    if not given:
        return None
    named = _by_class("--cost", given, classes)
    return [[0.0 if true == k else named.get(true, 1.0) for k in classes] for true in classes]


def _by_class(
    option: str,
    given: Sequence[str],
    classes: Sequence[str],
    parse: Callable[[str, str], float] | None = None,
) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in given:
        name, sign, value = text.rpartition("=")
        if not sign:
            raise ValueError(
                f"{option} {shown(text)} names no class; write CLASS=NUMBER, for instance "
                f"{classes[-1]}=10."
            )
        if name not in classes:
            known = ", ".join(shown(label, 20) for label in list(classes)[:8])
            raise ValueError(f"{option}: there is no class {shown(name)}; the classes are {known}.")
        found[name] = (parse or _number)(option, value)
    return found


def _number(option: str, text: str, least: float = 0.0) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not math.isfinite(value) or value < least:
        which = f" of at least {least:g}" if math.isfinite(least) else ""
        raise ValueError(f"{option} needs a number{which}, got {shown(text)}.")
    return value


def _share(option: str, text: str) -> float:
    value = _number(option, text)
    if value > 1:
        raise ValueError(f"{option} needs a number from 0 to 1, got {shown(text)}.")
    return value
