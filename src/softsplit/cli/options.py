"""Arguments and options of the commands: those of the parameters of the estimators, and others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from softsplit.settings.parameter import DATA, RUN, TREE, CliOption, options, spellings
from softsplit.settings.regression import NUMBER_SEARCH
from softsplit.settings.table import CLASSIFIER, SEARCH
from softsplit.support.messages import ParameterError

# The value of --dask if no address follows it: a cluster in this process.
ON_THIS_MACHINE = "here"

# Parameters of the estimators and their options, by the names of the options.
TABLE = {
    option.name: (parameter, option)
    for parameter, option in options(*CLASSIFIER, *SEARCH, *NUMBER_SEARCH)
}


# What the command line calls otherwise than Python does.
SPELLINGS = spellings(*CLASSIFIER, *SEARCH, *NUMBER_SEARCH) | {
    "feature_types": "--kind",
    "fixed": "--fixed",
    "ranges": "--range",
    "only_decrease": "--only-decrease",
    "only_increase": "--only-increase",
    "penalty='count'": "--scope size",
    "X": "the table",
    "column of X": "column of the table",
    "columns of X": "columns of the table",
    "class of y": "class of the target",
}


def takes(
    *tables: type, without: Collection[str] = (), **changed: Mapping[str, Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator that gives a command the options of the parameters in some tables.

    What was given is handed to the command as ``given``, by the names of the options. ``changed``
    are other fields of a ``CliOption``.
    """
    taken = {
        option.name: replace(option, **changed.get(option.name, {}))
        for _, option in options(*tables)
        if option.name not in without
    }

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def called(**values: Any) -> None:
            given = {name: values.pop(name) for name in taken}
            command(**values, given=given)

        # The help lists arguments and options without a default, those of the tables, all others.
        signature = inspect.signature(command, eval_str=True)
        by_name = inspect.Parameter.KEYWORD_ONLY
        own = [p for p in signature.parameters.values() if p.name != "given"]
        needed = [p for p in own if p.default is inspect.Parameter.empty]
        of_tables = [
            inspect.Parameter(name, by_name, default=option.default, annotation=typed(name))
            for name, option in taken.items()
        ]
        rest = [p.replace(kind=by_name) for p in own[len(needed) :]]
        every = [*needed, *of_tables, *rest]
        called.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
        called.__annotations__ = {p.name: p.annotation for p in every}
        return called

    def typed(name: str) -> Any:
        return Annotated[_type(taken[name].kind), of_parameter(name, taken[name])]

    return decorate


def of_parameter(name: str, changed: CliOption | None = None) -> Any:
    """Return an option of the table of parameters for Typer."""
    parameter, option = TABLE[name]
    option = changed or option
    return typer.Option(
        option.flag,
        *([option.short] if option.short else []),
        help=option.help,
        rich_help_panel=option.panel,
        min=option.least,
        max=option.most,
        metavar=option.metavar,
        parser=_reader(option, parameter.metadata["check"]) if option.kind is object else None,
    )


def _type(kind: Any) -> Any:
    """The type of the value of an option, which may be absent."""
    if kind is object:
        return Any
    if kind is list:
        return list[str] | None
    return (Literal[kind] if isinstance(kind, tuple) else kind) | None


def _reader(option: CliOption, check: Callable[[str, Any], Any]) -> Callable[[str], Any]:
    """Return what reads a word or a number that the check of its parameter takes."""

    def read(text: str) -> Any:
        value: Any = text
        for kind in (float, int):  # the last one that can read it
            try:
                value = kind(text)
            except ValueError:
                continue
        try:
            check(option.flag, value)
        except ParameterError as error:
            raise typer.BadParameter(error.spelled({})) from None
        return value

    return read


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="CSV (comma, semicolon, tab or bar; also .gz), Parquet, Feather or Excel file; - is "
        "standard input. The first line of a CSV names the columns.",
    ),
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file written by softsplit fit or save_model.")
]
Target = Annotated[
    str,
    typer.Option(
        "--target", "-t", help="Column with the classes or numbers.", rich_help_panel=DATA
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="Encoding of text files; default UTF-8.", rich_help_panel=DATA),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        help="Column by whose values the report groups its figures; need not be a feature.",
        rich_help_panel=DATA,
    ),
]
Refer = Annotated[
    float,
    typer.Option(
        "--refer",
        help="Confidence of prediction sets in the report; a case whose set is not the predicted "
        "class alone goes to a person.",
        rich_help_panel=TREE,
    ),
]
TimeLimit = Annotated[float, of_parameter("time_limit")]
Jobs = Annotated[int | None, of_parameter("jobs")]
Seed = Annotated[int, of_parameter("seed")]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="[ADDRESS]",
        help="Train on a Dask cluster, that of the scheduler at this address, or one in this "
        "process: DATA may be a folder or a pattern of Parquet or CSV files, larger than "
        "memory.",
        rich_help_panel=RUN,
    ),
]
TargetOrEvent = Annotated[
    str,
    typer.Option(
        "--target",
        "-t",
        "--event",
        help="Column with the classes or numbers; of --task survival 1 where the event came.",
        rich_help_panel=DATA,
    ),
]
Family = Annotated[
    Literal["squared", "huber", "absolute", "quantile", "poisson", "gamma", "tweedie"] | None,
    typer.Option(
        "--family",
        help="What an error costs, of a number: squared (default), huber, absolute, quantile; "
        "poisson for counts, gamma and tweedie for amounts.",
        rich_help_panel=TREE,
    ),
]
Exposure = Annotated[
    str | None,
    typer.Option(
        "--exposure",
        metavar="COLUMN",
        help="What counts or amounts are proportional to, such as years: a rate is predicted.",
        rich_help_panel=DATA,
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="COLUMN",
        help="Of --task survival: the time of the event, or of the last sight without it.",
        rich_help_panel=DATA,
    ),
]
Task = Annotated[
    Literal["auto", "classes", "number", "survival"],
    typer.Option(
        "--task",
        help="Whether the target is a class, a number, or an event at a --time; auto: a number "
        "where it has fractions or more than 30 different values.",
        rich_help_panel=DATA,
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show no progress.", rich_help_panel=RUN)
]
Text = Annotated[
    Literal["short", "full"],
    typer.Option("--text", help="full: also how probabilities follow from the tree."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=RUN)]


def target_option(text: str) -> Any:
    """Return the option for the column with the classes, where a model may name it."""
    return typer.Option("--target", "-t", help=text, rich_help_panel=DATA)
