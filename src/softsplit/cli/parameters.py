"""From options of the command line to parameters of the estimators.

Most options are parameters as they are. Those that name columns or classes are texts: COLUMN,
COLUMN=NUMBER, CLASS=NUMBER and the like.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from softsplit.cli.options import TABLE
from softsplit.support.messages import shown, unfit
from softsplit.support.parallel import n_threads

# What was given, by the names of options.
Given = Mapping[str, Any]

# Options that list columns of one kind, and what that is called.
KINDS = {"drop": "drop", "keep": "keep", "categorical": "category", "date": "date"}


class Known(NamedTuple):
    """Columns of the table, and its classes; there are none of rows that nobody has read yet."""

    columns: Sequence[str]
    classes: Sequence[str] = ()


def tree_parameters(given: Given, known: Known) -> dict[str, Any]:
    """Return the parameters that options give, but those about kinds of columns and strengths."""
    # 1. Texts are read by the reader of their parameter; others are values already.
    parameters: dict[str, Any] = {}
    for name, value in given.items():
        parameter = TABLE[name][0].name
        if parameter in READERS:
            parameters[parameter] = READERS[parameter](value, known) if value else None
        elif parameter not in ("feature_types", "global_strength", "fairness"):
            parameters[parameter] = value
    # 2. What an absent option means, where that is not None.
    if parameters.get("min_class_rate", "") is None:
        parameters["min_class_rate"] = "auto"
    parameters["time_limit"] = parameters["time_limit"] or None
    parameters["n_jobs"] = parameters["n_jobs"] or n_threads(None)
    if "parity" in given:
        parameters["fairness"] = fairness_of(given, known)
    return parameters


def typed(context: Any) -> list[str]:
    """Return the options about trees and rows that were given, as typed."""
    words = []
    for option in context.command.params:
        source = context.get_parameter_source(option.name)
        kept = option.name in TABLE or option.name == "encoding"
        if kept and source is not None and source.name == "COMMANDLINE":
            value = context.params[option.name]
            for text in value if isinstance(value, list | tuple) else [value]:
                words += [max(option.opts, key=len), str(text)]
    return words


# --- columns --------------------------------------------------------------------------------------


def columns_of_rates(given: Given, known: Known) -> list[str]:
    """Return the columns that requirements on rates name."""
    if not any(given[name] for name in ("rate", "parity", "equal_opportunity", "equalized_odds")):
        if given["favourable"] is not None:
            raise ValueError("--favourable is for --parity and the like; give one of them.")
        return []
    from softsplit.formulations.rates import named_columns

    bounds = rate_constraints(given["rate"] or (), known) or None
    return [str(name) for name in named_columns(bounds, fairness_of(given, known))]


def parse_feature_types(given: Given, names: Sequence[str]) -> dict[str, str]:
    """Return the kind of each column that --drop, --date, --kind and the like name."""
    from softsplit.data.learning import split_names
    from softsplit.variables.learning import refuse_kind

    # 1. Options that list columns of one kind, then --kind, whose columns may hold equal signs.
    listed = {kind: given[option] or () for option, kind in KINDS.items()}
    listed["drop"] = [*listed["drop"], *(given.get("sensitive_only") or ())]
    pairs = [
        (column, kind) for kind, texts in listed.items() for column in split_names(texts, names)
    ]
    for text in given["kind"] or ():
        fitting = [name for name in names if text.startswith(f"{name}=")]
        if not fitting:
            raise ValueError(
                f"--kind {shown(text)} must be COLUMN=KIND, with a column of the table."
            )
        name = max(fitting, key=len)
        kind = text[len(name) + 1 :].strip()
        refuse_kind(name, kind, "--kind")
        pairs.append((name, kind))
    # 2. No column may be two things at once.
    kinds: dict[str, str] = {}
    for name, kind in pairs:
        if kinds.setdefault(name, kind) != kind:
            raise ValueError(f"column {shown(name)} cannot be {kinds[name]} and {kind} at once.")
    return kinds


def _listed(texts: Sequence[str], known: Known) -> list[str]:
    """Columns in one list; their names may hold commas."""
    from softsplit.data.learning import split_names

    return split_names(texts, known.columns)


def _sets(texts: Sequence[str], known: Known) -> list[list[str]]:
    return [_listed([text], known) for text in texts]


def feature_costs(texts: Sequence[str], known: Known) -> dict[str, float]:
    """COLUMN=NUMBER, for each column."""
    costs: dict[str, float] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        if not name:
            raise ValueError(
                f"--feature-cost {shown(text)} must be COLUMN=NUMBER, for instance mri=30."
            )
        if name in costs:
            raise ValueError(f"--feature-cost names {shown(name)} twice; name it once.")
        costs[name] = _number("--feature-cost", value)
    return costs


def monotone_effects(texts: Sequence[str], known: Known) -> dict[str, Any]:
    """COLUMN=+, COLUMN=- or COLUMN=CLASS:+."""
    effects: dict[str, Any] = {}
    for text in texts:
        column, equals, wanted = text.rpartition("=")
        label, colon, sign = wanted.rpartition(":")
        if not equals or not column or sign not in ("+", "-") or bool(label) != bool(colon):
            raise ValueError(
                f"--monotone {shown(text)} names no effect; write COLUMN=+, COLUMN=- or "
                "COLUMN=CLASS:+."
            )
        if column in effects and not (label and isinstance(effects[column], dict)):
            raise ValueError(f"--monotone names column {shown(column)} twice; name it once.")
        if label:
            effects.setdefault(column, {})[label] = sign
        else:
            effects[column] = sign
    return effects


# --- classes --------------------------------------------------------------------------------------


def class_weights(texts: Sequence[str], known: Known) -> Any:
    """Balanced, or a number for each class."""
    if list(texts) == ["balanced"]:
        return "balanced"
    weights = _by_class("--class-weight", texts, known.classes)
    return {**dict.fromkeys(known.classes, 1.0), **weights}


def minimum_rates(texts: Sequence[str], known: Known) -> Any:
    """One number for all classes, or CLASS=NUMBER for some; 0 for others."""
    if len(texts) == 1 and "=" not in texts[0]:
        return _share("--min-rate", texts[0])
    rates = _by_class("--min-rate", texts, known.classes, _share)
    return {**dict.fromkeys(known.classes, 0.0), **rates}


def cost_matrix(texts: Sequence[str], known: Known) -> list[list[float]]:
    """The given cost for each error on a named true class, 1 for others."""
    costs, classes = _by_class("--cost", texts, known.classes), known.classes
    return [[0.0 if true == k else costs.get(true, 1.0) for k in classes] for true in classes]


def _by_class(
    option: str,
    texts: Sequence[str],
    classes: Sequence[str],
    parse: Callable[[str, str], float] | None = None,
) -> dict[str, float]:
    values: dict[str, float] = {}
    for text in texts:
        name, sign, value = text.rpartition("=")
        if not sign:
            raise ValueError(
                f"{option} {shown(text)} names no class; write CLASS=NUMBER, for instance "
                f"{classes[-1]}=10."
            )
        if name not in classes:
            known = ", ".join(shown(label, 20) for label in list(classes)[:8])
            raise ValueError(f"{option}: there is no class {shown(name)}; the classes are {known}.")
        values[name] = (parse or _number)(option, value)
    return values


# --- rates ----------------------------------------------------------------------------------------

RATE = re.compile(
    "(?P<of>.+?)(?: on (?P<column>.+?)\\s*(?P<where>=|<=|>)\\s*(?P<value>.+?))?(?: given "
    "(?P<given>.+?))?\\s*(?P<side><=|>=)\\s*(?P<bound>[^<>=]+)"
)


def fairness_of(given: Given, known: Known) -> list[Any] | None:
    """Return the requirements of the options that compare groups; None if there are none."""
    if not any(given[name] for name in ("parity", "equal_opportunity", "equalized_odds")):
        return None
    from softsplit.formulations.rates import EqualizedOdds, EqualOpportunity, Parity

    kinds = (Parity, "parity"), (EqualOpportunity, "equal_opportunity")
    required: list[Any] = []
    for kind, name in (*kinds, (EqualizedOdds, "equalized_odds")):
        option = TABLE[name][1].flag
        for text in given[name] or ():
            column, _, bound = text.rpartition("=")
            cut = None
            if column not in known.columns and ">" in column:
                column, _, number = column.rpartition(">")
                column, cut = column.strip(), _number(option, number, -math.inf)
            if column not in known.columns:
                raise ValueError(
                    f"{option} {shown(text)} names no column of the table; write it as "
                    "COLUMN=BOUND."
                )
            required.append(kind(column, _share(option, bound), of=given["favourable"], cut=cut))
    return required


def rate_constraints(texts: Sequence[str], known: Known) -> list[Any]:
    """Bounds of expected rates."""
    from softsplit.formulations.rates import RateConstraint

    bounds = []
    for text in texts:
        parts = RATE.fullmatch(text.strip())
        if parts is None:
            raise ValueError(
                f"--rate {shown(text)} is not understood; write it as 'CLASS on COLUMN=VALUE <= "
                "NUMBER' or 'CLASS on COLUMN > NUMBER <= NUMBER'."
            )
        # 1. The rows: those of a value, those on one side of a number, or all.
        rows: tuple[Any, ...] | None = None
        if parts["where"] == "=":
            rows = parts["column"], parts["value"]
        elif parts["where"] is not None:
            number = _number("--rate", parts["value"], -math.inf)
            rows = parts["column"], parts["where"], number
        # 2. The bound.
        side = "at_most" if parts["side"] == "<=" else "at_least"
        bound = _share("--rate", parts["bound"])
        bounds.append(RateConstraint(rows, parts["of"], given=parts["given"], **{side: bound}))
    return bounds


def _number(option: str, text: str, least: float = 0.0) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not math.isfinite(value) or value < least:
        which = f" of at least {least:g}" if math.isfinite(least) else ""
        raise unfit(option, text, f"needs a number{which}")
    return value


def _share(option: str, text: str) -> float:
    value = _number(option, text)
    if value > 1:
        raise unfit(option, text, "needs a number from 0 to 1")
    return value


# What reads the texts of an option, by the name of the parameter.
READERS: dict[str, Callable[[Sequence[str], Known], Any]] = {
    "groups": _sets,
    "required": _listed,
    "forbidden_together": _sets,
    "at_most_one": _sets,
    "feature_costs": feature_costs,
    "monotone": monotone_effects,
    "class_weight": class_weights,
    "min_class_rate": minimum_rates,
    "cost_matrix": cost_matrix,
    "constraints": rate_constraints,
}
