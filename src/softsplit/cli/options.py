"""Arguments and options shared by several commands."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class ScaleName(StrEnum):
    """Scaling of the features before training."""

    minmax = "minmax"
    quantile = "quantile"
    standard = "standard"


class LossName(StrEnum):
    """The training loss."""

    log = "log"
    cost = "cost"


class Scope(StrEnum):
    """What is penalised: size (both counts), features, coefficients, or the last two by halves."""

    size = "size"
    global_ = "global"
    local = "local"
    both = "both"


class Selection(StrEnum):
    """The rule that selects one of the compared trees."""

    default = "default"
    sparse = "sparse"
    one_se = "one_se"
    best = "best"
    auto = "auto"


class Teacher(StrEnum):
    """Classifiers whose probabilities a tree may learn."""

    auto = "auto"
    forest = "forest"
    boosting = "boosting"


ON_THIS_MACHINE = "here"
"""The value of --dask if no address follows it: a cluster in this process."""

DATA = "The data"
TREE = "The tree"
REQUIREMENTS = "What must hold"
RUN = "The run"


def of_tree(flag: str, text: str) -> Any:
    """Return an option of the panel ``TREE`` with the help ``text``."""
    return typer.Option(flag, help=text, rich_help_panel=TREE)


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="CSV (comma, semicolon, tab or bar; also .gz), Parquet, Feather or Excel file; - is "
        "standard input. "
        "The first line of a CSV names the columns.",
    ),
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file written by softsplit fit or save_model.")
]
Target = Annotated[
    str,
    typer.Option("--target", "-t", help="Column with the classes.", rich_help_panel=DATA),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        help="Columns to ignore, separated by commas; may be repeated.",
        rich_help_panel=DATA,
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        help="Columns to use that look like identifiers, free text or constants.",
        rich_help_panel=DATA,
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        "--categorical",
        help="Columns of numbers that are categories. Text columns always are.",
        rich_help_panel=DATA,
    ),
]
Date = Annotated[
    list[str] | None,
    typer.Option(
        "--date",
        help="Columns of dates; 2026-11-16, 16.11.2026 and the like are recognised without it.",
        rich_help_panel=DATA,
    ),
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="COLUMN=KIND",
        help="Kind of one column: number, category, 'ordered: low < mid < high', 'date: hour, "
        "weekday', 'date since OTHER', keep or drop; may be repeated.",
        rich_help_panel=DATA,
    ),
]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--groups",
        help="Columns, separated by commas, that are selected together; once for each group.",
        rich_help_panel=DATA,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="Encoding of text files; default UTF-8.", rich_help_panel=DATA),
]
Depth = Annotated[
    int | None,
    typer.Option(
        "--depth", min=1, max=10, help="Depth; chosen if not given.", rich_help_panel=TREE
    ),
]
Strength = Annotated[
    float | None,
    typer.Option(
        "--strength",
        min=0.0,
        help="Penalty of each feature, as global_strength in Python; chosen if not given.",
        rich_help_panel=TREE,
    ),
]
Ridge = Annotated[
    float | None,
    typer.Option(
        "--ridge",
        min=0.0,
        help="Penalty of large coefficients; chosen if not given, 1 with --depth and --strength.",
        rich_help_panel=TREE,
    ),
]
Steepness = Annotated[
    float | None,
    typer.Option(
        "--steepness",
        min=1e-6,
        help="Steepness of the splits with --loss cost; chosen if not given.",
        rich_help_panel=TREE,
    ),
]
MaxFeatures = Annotated[
    int | None,
    typer.Option(
        "--max-features",
        min=1,
        help="Largest number of columns in the tree.",
        rich_help_panel=TREE,
    ),
]
MaxTerms = Annotated[
    int | None,
    typer.Option(
        "--max-terms",
        min=1,
        help="Largest number of columns in a question.",
        rich_help_panel=TREE,
    ),
]
MaxQuestions = Annotated[
    int | None,
    typer.Option(
        "--max-questions",
        min=1,
        help="Largest number of questions.",
        rich_help_panel=TREE,
    ),
]
Required = Annotated[
    list[str] | None,
    typer.Option(
        "--required",
        help="Columns that must be in the tree, separated by commas.",
        rich_help_panel=REQUIREMENTS,
    ),
]
ForbiddenTogether = Annotated[
    list[str] | None,
    typer.Option(
        "--forbidden-together",
        metavar="A,B",
        help="Two columns of which at most one may be in the tree; once for each pair.",
        rich_help_panel=REQUIREMENTS,
    ),
]
AtMostOne = Annotated[
    list[str] | None,
    typer.Option(
        "--at-most-one",
        metavar="A,B,C",
        help="Columns of which at most one may be in the tree; once for each set.",
        rich_help_panel=REQUIREMENTS,
    ),
]
FeatureCost = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-cost",
        metavar="COLUMN=NUMBER",
        help="Cost of measuring a column; other columns cost 1. May be repeated.",
        rich_help_panel=REQUIREMENTS,
    ),
]
Parity = Annotated[
    list[str] | None,
    typer.Option(
        "--parity",
        metavar="COLUMN=BOUND",
        help="Largest difference of the rates of the favourable class between groups of a column "
        "(demographic parity); COLUMN>NUMBER=BOUND compares values up to a number and above it. "
        "May be repeated.",
        rich_help_panel=REQUIREMENTS,
    ),
]
EqualOpportunity = Annotated[
    list[str] | None,
    typer.Option(
        "--equal-opportunity",
        metavar="COLUMN=BOUND",
        help="The same among the rows of the favourable class.",
        rich_help_panel=REQUIREMENTS,
    ),
]
EqualizedOdds = Annotated[
    list[str] | None,
    typer.Option(
        "--equalized-odds",
        metavar="COLUMN=BOUND",
        help="The same among the rows of each class.",
        rich_help_panel=REQUIREMENTS,
    ),
]
Favourable = Annotated[
    str | None,
    typer.Option(
        "--favourable",
        metavar="CLASS",
        help="The class whose rates are compared; the second of two, if not given.",
        rich_help_panel=REQUIREMENTS,
    ),
]
SensitiveOnly = Annotated[
    list[str] | None,
    typer.Option(
        "--sensitive-only",
        metavar="COLUMN",
        help="Column that defines groups but is not a feature; may be repeated.",
        rich_help_panel=REQUIREMENTS,
    ),
]
Rate = Annotated[
    list[str] | None,
    typer.Option(
        "--rate",
        metavar="'CLASS on COLUMN=VALUE <= NUMBER'",
        help="Bound of the expected rate of a class, <= or >=, on some rows: COLUMN=VALUE, "
        "COLUMN > NUMBER or COLUMN <= NUMBER; without 'on ...' on all rows, with 'given CLASS' "
        "among those of a class. May be repeated.",
        rich_help_panel=REQUIREMENTS,
    ),
]
ScaleOption = Annotated[
    ScaleName | None,
    typer.Option("--scale", help="Scaling; chosen if not given.", rich_help_panel=TREE),
]


def _curves(text: str) -> str | int:
    """Parse curves: auto, or a number of knots."""
    if text == "auto":
        return text
    if not text.isdecimal():
        raise typer.BadParameter(f"{text!r} is neither auto nor a number of knots.")
    return int(text)


Curves = Annotated[
    Any,
    typer.Option(
        "--curves",
        parser=_curves,
        metavar="KNOTS",
        help="Knots at which the effect of a number may bend, 0 for straight effects; auto is one, "
        "and three with thousands of rows (none with --loss cost).",
        rich_help_panel=TREE,
    ),
]
Monotone = Annotated[
    list[str] | None,
    of_tree(
        "--monotone",
        "An effect that must be monotone: COLUMN=+ or COLUMN=-, for the second class or for all "
        "classes in their order, or COLUMN=CLASS:+; may be repeated.",
    ),
]
LossOption = Annotated[
    LossName,
    typer.Option(
        "--loss",
        help="Train by likelihood (log), or for the expected misclassification cost of the paper "
        "(cost).",
        rich_help_panel=TREE,
    ),
]
ScopeOption = Annotated[
    Scope | None,
    typer.Option(
        "--scope",
        help="What is penalised: features, and coefficients at a quarter of the price (size), "
        "features (global), single coefficients (local), or both at one price (both). Default: "
        "size, or global with --loss cost.",
        rich_help_panel=TREE,
    ),
]
SelectionOption = Annotated[
    Selection,
    typer.Option(
        "--selection",
        help="The trade between quality and size: the best tree (best), or a smaller one (default, "
        "one_se, sparse, in this order); auto is default.",
        rich_help_panel=TREE,
    ),
]
TeacherOption = Annotated[
    Teacher | None,
    typer.Option(
        "--teacher",
        help="Mix probabilities of another classifier with the classes that trees learn, where "
        "that makes the chosen tree better or smaller.",
        rich_help_panel=TREE,
    ),
]
ClassWeight = Annotated[
    list[str] | None,
    of_tree(
        "--class-weight",
        "Weight of the rows of a class in training: balanced (rare classes count as much as "
        "frequent ones), or CLASS=NUMBER, which may be repeated.",
    ),
]
MinRate = Annotated[
    list[str] | None,
    of_tree(
        "--min-rate",
        "Share of a class that the tree must find in training: CLASS=NUMBER, which may be "
        "repeated, or one number from 0 to 1 for all classes.",
    ),
]
Cost = Annotated[
    list[str] | None,
    of_tree(
        "--cost",
        "Cost of a wrong prediction for a row of a class: CLASS=NUMBER, which may be repeated; "
        "1 for classes that are not named.",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="Score used to compare trees, a scorer of scikit-learn such as balanced_accuracy or "
        "roc_auc. Default: log-loss plus a penalty for each feature; with --loss cost accuracy; "
        "with --class-weight balanced balanced_accuracy.",
        rich_help_panel=TREE,
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option(
        "--time-limit",
        min=0.0,
        help="Seconds for training and the report; then the best tree so far is kept. 0 is no "
        "limit. Reading the table and compiling on first use are not included.",
        rich_help_panel=RUN,
    ),
]
EFFORTS = ("fast", "balanced", "thorough")


def _effort(text: str) -> str | float:
    """Parse an effort: one of the names, or a positive number."""
    if text in EFFORTS:
        return text
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise typer.BadParameter(f"{text!r} is none of {', '.join(EFFORTS)}, and no number > 0.")
    return number


Effort = Annotated[
    Any,
    typer.Option(
        "--effort",
        parser=_effort,
        metavar="EFFORT",
        help="fast, balanced, thorough, or a multiple of balanced: how many candidate trees are "
        "tried per start or, with --loss cost, how long the search for better ones goes on.",
        rich_help_panel=RUN,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="Threads; default: all.", rich_help_panel=RUN),
]
Seed = Annotated[int, typer.Option("--seed", help="Random seed.", rich_help_panel=RUN)]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="[ADDRESS]",
        help="Train on a Dask cluster, that of the scheduler at this address, or one in this "
        "process: DATA may be a folder or a pattern of Parquet or CSV files, larger than memory.",
        rich_help_panel=RUN,
    ),
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
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show no progress.", rich_help_panel=RUN)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=RUN)]
