"""A fitted tree as plain dictionaries and lists, and back with everything checked.

A tree is stored in scaled units, as it was trained, so that a loaded tree predicts the same bits.
Only coefficients that are not zero are written. The section "tree" holds the branches and leaves,
the optional section "table" the variables that the features were made of, the optional section
"edits" what was changed by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softsplit.persistence.limits import LIMITS
from softsplit.persistence.reader import ModelFileError, entries, items, real, reals, text, whole
from softsplit.persistence.table_section import read_table_section, written_table
from softsplit.reading.conformal import HeldOutScores
from softsplit.reading.edits import Edit, Edits
from softsplit.reading.model import TreeModel, used_shares
from softsplit.reading.profile import ColumnProfile, TableProfile, has_levels, n_cells
from softsplit.reading.rates import RateRecord
from softsplit.reading.summary import FEATURE_KINDS, FeatureSummary
from softsplit.reading.walk import Walk
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.support.version import __version__
from softsplit.tree.parameters import MAX_DEPTH, TreeParameters
from softsplit.tree.scaling import SMALLEST_SPAN, Scaling, scaling_from
from softsplit.variables import MonotoneEffects, Variable
from softsplit.variables.columns import column_costs

if TYPE_CHECKING:
    from softsplit.estimators.classifier import SoftTreeClassifier

FORMAT = "softsplit-tree"
VERSION = 1


PARAMETERS = (
    "depth", "penalty", "local_strength", "global_strength", "sharpness", "exponent", "offset",
    "steepness", "cost_matrix", "class_weight", "min_class_rate", "solver", "n_starts",
    "max_iter", "tol", "time_limit", "scale", "n_jobs", "random_state", "verbose", "loss",
    "engine", "ridge", "feature_types", "groups", "effort", "device", "decision",
    "max_features", "max_terms", "max_questions", "curves", "monotone",
    "required", "forbidden_together", "at_most_one", "feature_costs",
    "constraints", "fairness",
)  # fmt: skip
"""Of a ``SoftTreeClassifier``, which need not be loaded to read a tree."""


class Stored(NamedTuple):
    """What a model file holds: a tree, whether its columns have names, how it was trained."""

    model: TreeModel
    named: bool
    parameters: dict[str, Any]


def to_document(tree: SoftTreeClassifier) -> dict[str, Any]:
    """The file's content."""
    model = tree.tree_
    importances = model.importances
    written, omitted = _written_parameters(tree)
    training: dict[str, Any] = {"parameters": written, "omitted": omitted}
    if model.objective is not None:
        training["objective"] = float(model.objective)
    if model.n_iter is not None:
        training["n_iter"] = int(model.n_iter)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "software": f"softsplit {__version__}",
        "classes": _written_classes(model.classes),
        "features": {
            "names": _written_names(tree),
            "low": model.summary.low.tolist(),
            "high": model.summary.high.tolist(),
            "scaled_mean": model.summary.scaled_mean.tolist(),
            "kinds": model.summary.kinds.tolist(),
            "importances": None if importances is None else importances.tolist(),
        },
        "scaling": _written_scaling(model.scaling),
        "tree": written_tree(model),
        "training": training,
    }
    if model.rates:
        document["rates"] = [_written_rates(one) for one in model.rates]
    if model.coding is not None or model.target is not None:
        document["table"] = written_table(model.coding, model.target)
    if model.held_out is not None:
        document["held_out"] = {
            "scores": [scores.tolist() for scores in model.held_out.scores],
            "rows": model.held_out.rows.tolist(),
        }
    if model.edits:
        document["edits"] = _written_edits(model.edits)
    if model.profile is not None:
        document["profile"] = _written_profile(model.profile)
    return document


def from_document(document: Any) -> Stored:
    """What the file holds; a ``ModelFileError`` with one sentence if anything is amiss."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"this is no model file of softsplit: its format is not {FORMAT!r}.")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"version {shown(version)} of the model file is no version.")
    if version > VERSION:
        raise ModelFileError(
            f"the model file has version {shown(version)}, this softsplit reads up to "
            f"{VERSION}; install a newer softsplit."
        )
    parts = ("format", "version", "software", "classes", "features", "scaling", "tree", "training")
    entries(document, "the top level", parts, ("table", "held_out", "edits", "rates", "profile"))
    text(document["software"], "software")
    classes = _read_classes(document["classes"])
    names, summary, importances = _read_features(document["features"])
    scaling = _read_scaling(document["scaling"], len(summary.low))
    model = read_tree(document["tree"], scaling, classes, names, summary)
    parameters, known = _read_training(document["training"])
    if importances is not None:
        known["importances"] = used_shares(importances, model.parameters.weights)
    if "rates" in document:
        listed = items(document["rates"], "rates")
        known["rates"] = tuple(_read_rates(one, f"rates[{n}]") for n, one in enumerate(listed))
    named = document["features"]["names"] is not None
    coding = None
    if "table" in document:
        coding, known["target"] = read_table_section(document["table"])
    if coding is not None:
        if len(coding.column_names) != len(names):
            raise ModelFileError("table of the model file does not fit the features of its tree.")
        known |= {"coding": coding, "feature_names": coding.column_names}
        named = coding.named
    if "held_out" in document:
        known["held_out"] = _read_held_out(document["held_out"], len(classes))
    if "edits" in document:
        known["edits"] = _read_edits(document["edits"], model)
    model = replace(model, **known)
    if parameters.get("feature_costs") is not None:
        try:
            costs = column_costs(parameters["feature_costs"], model.column_names)
        except ValueError as error:
            raise ModelFileError(f"training.parameters of the model file: {error}") from None
        model = replace(model, column_costs=costs)
    if "profile" in document:
        model = replace(model, profile=_read_profile(document["profile"], model))
    with np.errstate(over="ignore", invalid="ignore"):
        sound = all(np.all(np.isfinite(part)) for part in model.splits)
    if not sound:
        raise ModelFileError("the splits of the model file overflow in original units.")
    return Stored(model, named, parameters)


# --- classes ------------------------------------------------------------------------------------


def _written_classes(classes: NDArray[Any]) -> dict[str, Any]:
    # Python has no floats of other lengths.
    plain = classes.astype(np.float64) if classes.dtype.kind == "f" else classes
    values = plain.tolist()
    kinds = {"U": "string", "b": "boolean", "i": "integer", "u": "integer", "f": "number"}
    kind = kinds.get(classes.dtype.kind)
    if not np.array_equal(plain, classes):
        kind = None
    if classes.dtype.kind == "O" and all(type(value) is str for value in values):
        kind = "object"
    if kind is None:
        raise ValueError(
            f"class labels of type {classes.dtype} cannot be written to a model file; "
            "use strings, integers, booleans or floats."
        )
    return {"type": kind, "values": values}


def _read_classes(value: Any) -> NDArray[Any]:
    found = entries(value, "classes", ("type", "values"))
    kind, listed = text(found["type"], "classes.type"), items(found["values"], "classes.values")
    where = "classes.values"
    if len(listed) < 2:
        raise ModelFileError("the model file has fewer than two classes.")
    if kind in ("string", "object"):
        strings = [text(v, where) for v in listed]
        if len(strings) * max(map(len, strings)) > LIMITS.label_characters:
            raise ModelFileError("the class labels of the model file are too long to be loaded.")
        labels = np.array(strings, dtype=None if kind == "string" else object)
    elif kind == "integer":
        numbers = [whole(v, where, -(2**63), 2**64 - 1) for v in listed]
        unsigned = max(numbers) >= 2**63
        if unsigned and min(numbers) < 0:
            raise ModelFileError("the classes of the model file do not fit one type of integer.")
        labels = np.array(numbers, dtype=np.uint64 if unsigned else np.int64)
    elif kind == "number":
        labels = np.array([real(v, where) for v in listed], dtype=np.float64)
    elif kind == "boolean" and all(type(v) is bool for v in listed):
        labels = np.array(listed, dtype=np.bool_)
    else:
        raise ModelFileError(f"classes of the model file do not fit their type {shown(kind)}.")
    plain = labels.tolist()
    if any(a >= b for a, b in pairwise(plain)):
        raise ModelFileError("the classes of the model file must be distinct and in order.")
    return labels


# --- features and scaling -----------------------------------------------------------------------


def _read_features(value: Any) -> tuple[tuple[str, ...], FeatureSummary, FloatArray | None]:
    keys = ("names", "low", "high", "scaled_mean", "kinds", "importances")
    found = entries(value, "features", keys)
    low = reals(found["low"], "features.low", None, -LIMITS.number, LIMITS.number)
    if len(low) == 0:
        raise ModelFileError("the model file has no features.")
    n = len(low)
    high = reals(found["high"], "features.high", n, -LIMITS.number, LIMITS.number)
    if np.any(low > high):
        raise ModelFileError(
            f"feature {int(np.argmax(low > high))} of the model file has low above high."
        )
    kinds = [text(v, "features.kinds") for v in items(found["kinds"], "features.kinds", n)]
    for kind in kinds:
        if kind not in FEATURE_KINDS:
            raise ModelFileError(f"features.kinds of the model file holds {shown(kind)}.")
    mean = reals(found["scaled_mean"], "features.scaled_mean", n, -LIMITS.number, LIMITS.number)
    shares = found["importances"]
    importances = None if shares is None else reals(shares, "features.importances", n, 0.0, 1.0)
    summary = FeatureSummary(low, high, mean, np.array(kinds))
    return _read_names(found["names"], n), summary, importances


def _written_names(tree: SoftTreeClassifier) -> list[str] | None:
    """None if there are none, or if they follow from the section "table"."""
    named = hasattr(tree, "feature_names_in_") and tree.tree_.coding is None
    return list(tree.tree_.feature_names) if named else None


def _read_names(value: Any, n: int) -> tuple[str, ...]:
    if value is None:
        return tuple(f"x{j}" for j in range(n))
    names = tuple(text(v, "features.names") for v in items(value, "features.names", n))
    if len(set(names)) < n:
        raise ModelFileError("two features of the model file have the same name.")
    return names


def _written_scaling(scaling: Scaling) -> dict[str, Any]:
    """Arrays as lists; an infinite span (a constant column) is null."""
    arrays = {
        name: [None if v == np.inf else v for v in array.tolist()]
        for name, array in scaling.arrays().items()
    }
    return {"kind": scaling.kind, **arrays}


def _read_scaling(value: Any, n_features: int) -> Scaling:
    quantile = isinstance(value, dict) and value.get("kind") == "quantile"
    names = ("knots", "ranks", "starts") if quantile else ("low", "span")
    found = entries(value, "scaling", ("kind", *names))
    arrays: dict[str, Any] = {}
    for name in names:
        listed = items(found[name], f"scaling.{name}")
        if name == "span":
            listed = [SMALLEST_SPAN if v is None else v for v in listed]
            low, high = SMALLEST_SPAN, LIMITS.number
            numbers = reals(listed, "scaling.span", None, low, high)
            arrays[name] = np.where([v is None for v in found[name]], np.inf, numbers)
        else:
            arrays[name] = reals(listed, f"scaling.{name}", None, -LIMITS.number, LIMITS.number)
    try:
        made = scaling_from(text(found["kind"], "scaling.kind"), arrays)
    except ValueError as error:
        raise ModelFileError(f"scaling of the model file: {error}") from None
    if made.n_features != n_features:
        raise ModelFileError(
            f"scaling of the model file is for {made.n_features} features, not {n_features}."
        )
    return made


# --- training -----------------------------------------------------------------------------------


def _written_parameters(tree: SoftTreeClassifier) -> tuple[dict[str, Any], list[str]]:
    """Parameters as plain values, and the names of those that are none."""
    written, omitted = {}, []
    for name, value in tree.get_params(deep=False).items():
        try:
            written[name] = _plain(value)
        except TypeError:
            omitted.append(name)
    return written, omitted


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and np.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {"pairs": [[_plain(k), _plain(v)] for k, v in value.items()]}
    if type(value).__module__ == "softsplit.formulations.rates":
        from softsplit.formulations.rates import as_plain  # loads compiled code

        return {"requirement": _plain(as_plain(value))}
    raise TypeError


def _read_training(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of the estimator, and what is known of the training."""
    found = entries(value, "training", ("parameters", "omitted"), ("objective", "n_iter"))
    parameters = entries(found["parameters"], "training.parameters", (), PARAMETERS)
    for name in items(found["omitted"], "training.omitted"):
        if text(name, "training.omitted") not in PARAMETERS:
            raise ModelFileError(
                f"training.omitted of the model file has an unknown name {shown(name)}."
            )
    read = {n: _read_plain(v, f"training.parameters.{n}") for n, v in parameters.items()}
    known: dict[str, Any] = {}
    if "objective" in found:
        known["objective"] = real(found["objective"], "training.objective")
    if "n_iter" in found:
        known["n_iter"] = whole(found["n_iter"], "training.n_iter", 0, 2**53)
    return read, known


def _read_plain(value: Any, where: str, depth: int = 0) -> Any:
    if depth > LIMITS.nesting:
        raise ModelFileError(f"{where} of the model file is nested too deeply for a parameter.")
    if isinstance(value, list):
        return [_read_plain(v, where, depth + 1) for v in value]
    if isinstance(value, dict) and "requirement" in value:
        from softsplit.formulations.rates import from_plain

        given = entries(value, where, ("requirement",))["requirement"]
        try:
            return from_plain(_read_plain(given, where, depth + 1))
        except (AttributeError, TypeError, ValueError):
            raise ModelFileError(f"{where} of the model file is no requirement on rates.") from None
    if isinstance(value, dict):
        pairs = items(entries(value, where, ("pairs",))["pairs"], where)
        read = {}
        for pair in pairs:
            key, content = items(pair, where, 2)
            if isinstance(key, list | dict):
                raise ModelFileError(f"{where} of the model file has a key that is no plain value.")
            read[key] = _read_plain(content, where, depth + 1)
        return read
    if isinstance(value, str):
        return text(value, where)
    return real(value, where) if isinstance(value, float) else value


def _read_held_out(value: Any, n_classes: int) -> HeldOutScores:
    found = entries(value, "held_out", ("scores", "rows"))
    lists = items(found["scores"], "held_out.scores", n_classes)
    scores = [reals(v, f"held_out.scores[{k}]", None, 0.0, 1.0) for k, v in enumerate(lists)]
    rows = reals(found["rows"], "held_out.rows", n_classes, 0.0, LIMITS.number)
    empty = [len(known) == 0 for known in scores]
    if empty != (rows == 0).tolist() or any(np.any(np.diff(known) < 0) for known in scores):
        raise ModelFileError("held_out.scores of the model file do not ascend or fit their rows.")
    return HeldOutScores(tuple(scores), rows)


def _written_profile(profile: TableProfile) -> dict[str, Any]:
    return {
        "classes": profile.classes.tolist(),
        "leaves": None if profile.leaves is None else profile.leaves.tolist(),
        "columns": [
            None
            if one is None
            else {"counts": one.counts.tolist(), "missing": one.missing}
            | ({} if one.edges is None else {"edges": one.edges.tolist()})
            for one in profile.columns
        ],
    }


def _read_profile(value: Any, model: TreeModel) -> TableProfile:
    found = entries(value, "profile", ("classes", "leaves", "columns"))
    n_leaves, variables = model.topology.n_leaves, model.table_coding.variables
    classes = reals(found["classes"], "profile.classes", len(model.classes), 0.0, LIMITS.number)
    leaves = None
    if found["leaves"] is not None:
        leaves = reals(found["leaves"], "profile.leaves", n_leaves, 0.0, LIMITS.number)
    columns: list[ColumnProfile | None] = []
    listed = items(found["columns"], "profile.columns", len(variables))
    for i, (one, variable) in enumerate(zip(listed, variables, strict=True)):
        where = f"profile.columns[{i}]"
        columns.append(None if one is None else _read_column_profile(one, where, variable))
    return TableProfile(tuple(columns), classes, leaves)


def _read_column_profile(value: Any, where: str, variable: Variable) -> ColumnProfile:
    found = entries(value, where, ("counts", "missing"), ("edges",))
    counts = reals(found["counts"], f"{where}.counts", None, 0.0, LIMITS.number)
    edges = None
    if "edges" in found:
        edges = reals(found["edges"], f"{where}.edges", None, -LIMITS.number, LIMITS.number)
    if has_levels(variable) != (edges is None) or len(counts) != n_cells(variable, edges):
        raise ModelFileError(f"{where} of the model file does not fit its variable.")
    if edges is not None and np.any(np.diff(edges) <= 0):
        raise ModelFileError(f"{where}.edges of the model file do not ascend.")
    missing = real(found["missing"], f"{where}.missing", 0.0, LIMITS.number)
    return ColumnProfile(counts, missing, edges)


# --- the section "rates": what was required, and what holds on the training rows -----------------


def _written_rates(record: RateRecord) -> dict[str, Any]:
    """Infinite bounds are null."""
    written = asdict(record)
    for name in ("low", "high"):
        written[name] = written[name] if np.isfinite(written[name]) else None
    return {k: list(v) if isinstance(v, tuple) else v for k, v in written.items()}


def _read_rates(value: Any, where: str) -> RateRecord:
    names = tuple(field.name for field in fields(RateRecord))
    found = entries(value, where, names)
    groups = tuple(text(v, f"{where}.groups") for v in items(found["groups"], f"{where}.groups"))
    if not groups:
        raise ModelFileError(f"{where} of the model file has no groups.")
    n = len(groups)

    def bound(name: str, default: float) -> float:
        return default if found[name] is None else real(found[name], f"{where}.{name}")

    def numbers(name: str, high: float = 1.0 + 1e-9) -> tuple[float, ...]:
        return tuple(reals(found[name], f"{where}.{name}", n, 0.0, high).tolist())

    return RateRecord(
        text(found["name"], f"{where}.name"),
        text(found["of"], f"{where}.of"),
        groups,
        bound("low", -np.inf),
        bound("high", np.inf),
        numbers("expected"),
        numbers("decided"),
        numbers("weights", LIMITS.number),
        real(found["multiplier"], f"{where}.multiplier"),
        real(found["grain"], f"{where}.grain"),
    )


# --- the section "tree": branches and leaves -----------------------------------------------------


def written_tree(model: TreeModel) -> dict[str, Any]:
    """The tree as plain dictionaries and lists."""
    weights = model.parameters.weights
    used = [np.flatnonzero(weights[:, t]) for t in range(weights.shape[1])]
    written = {
        "depth": model.topology.depth,
        "steepness": float(model.steepness),
        "zero_threshold": float(model.zero_threshold),
        "branches": [
            {
                "threshold": float(model.parameters.thresholds[t]),
                "features": used[t].tolist(),
                "weights": weights[used[t], t].tolist(),
            }
            for t in range(len(used))
        ],
        "leaves": model.parameters.leaf_classes.T.tolist(),
    }
    if model.distributions is not None:
        written["distributions"] = model.distributions.T.tolist()
    if model.call_costs is not None:
        written["call_costs"] = model.call_costs.tolist()
    if model.walk is not None:
        written["walk"] = _written_walk(model.walk)
    if model.monotone is not None:
        signs = [
            {"column": place, "sign": sign, "features": list(columns)}
            for (place, sign), columns in zip(
                model.monotone.signs, model.monotone.columns, strict=True
            )
        ]
        written["monotone"] = {"effects": signs, "levels": list(model.monotone.levels)}
    return written


def _written_walk(walk: Walk) -> dict[str, Any]:
    used = [np.flatnonzero(row) for row in walk.coefficients]
    return {
        "questions": [
            {
                "features": used[t].tolist(),
                "coefficients": walk.coefficients[t, used[t]].tolist(),
                "sign": ">" if walk.upwards[t] else "<",
                "threshold": float(walk.thresholds[t]),
                "ranks": bool(walk.ranked[t]),
            }
            for t in range(len(used))
        ],
        "rows": [[None if np.isnan(c) else c for c in row] for row in walk.counts.T.tolist()],
        "classes": walk.classes.tolist(),
    }


def _read_walk(value: Any, n_branches: int, n_features: int, n_classes: int) -> Walk:
    where = "tree.walk"
    found = entries(value, where, ("questions", "rows", "classes"))
    coefficients, thresholds = np.zeros((n_branches, n_features)), np.zeros(n_branches)
    upwards, ranked = np.zeros((2, n_branches), dtype=bool)
    listed = items(found["questions"], f"{where}.questions", n_branches)
    keys = ("features", "coefficients", "sign", "threshold", "ranks")
    for t, one in enumerate(listed):
        place = f"{where}.questions[{t}]"
        question = entries(one, place, keys)
        used = [
            whole(j, f"{place}.features", 0, n_features - 1)
            for j in items(question["features"], f"{place}.features")
        ]
        sizes = items(question["coefficients"], f"{place}.coefficients", len(used))
        coefficients[t, used] = [real(c, f"{place}.coefficients") for c in sizes]
        thresholds[t] = real(question["threshold"], f"{place}.threshold")
        if question["sign"] not in (">", "<"):
            raise ModelFileError(f"{place}.sign of the model file must be '>' or '<'.")
        if not isinstance(question["ranks"], bool):
            raise ModelFileError(f"{place}.ranks of the model file must be true or false.")
        upwards[t], ranked[t] = question["sign"] == ">", question["ranks"]
    rows = items(found["rows"], f"{where}.rows", n_branches + 1)
    counts = np.array(
        [
            [
                np.nan if c is None else real(c, f"{where}.rows", 0.0)
                for c in items(row, f"{where}.rows", n_classes)
            ]
            for row in rows
        ]
    ).T
    classes = [
        whole(k, f"{where}.classes", 0, n_classes - 1)
        for k in items(found["classes"], f"{where}.classes", n_branches + 1)
    ]
    return Walk(coefficients, thresholds, upwards, ranked, counts, np.array(classes, dtype=np.intp))


def read_tree(
    value: Any,
    scaling: Scaling,
    classes: NDArray[Any],
    names: tuple[str, ...],
    summary: FeatureSummary,
) -> TreeModel:
    """The tree; a ``ModelFileError`` if it does not fit the other sections or itself."""
    keys = ("depth", "steepness", "zero_threshold", "branches", "leaves")
    found = entries(value, "tree", keys, ("distributions", "call_costs", "walk", "monotone"))
    depth = whole(found["depth"], "tree.depth", 1, MAX_DEPTH)
    n_branches, n_features = 2**depth - 1, len(names)
    if n_branches * max(n_features, len(classes)) > LIMITS.coefficients:
        raise ModelFileError(
            f"the tree of the model file has {n_branches} branches and {n_features} features, "
            "more than softsplit loads."
        )
    listed = items(found["branches"], "tree.branches", n_branches)
    weights, thresholds = np.zeros((n_features, n_branches)), np.zeros(n_branches)
    for t, branch in enumerate(listed):
        thresholds[t], used, sizes = _read_branch(branch, f"tree.branches[{t}]", n_features)
        weights[used, t] = sizes
    leaves = _read_leaves(found["leaves"], "tree.leaves", n_branches + 1, len(classes))
    shares = costs = None
    if "distributions" in found:
        listed = found["distributions"]
        shares = _read_leaves(listed, "tree.distributions", n_branches + 1, len(classes))
    if "call_costs" in found:
        costs = _read_costs(found["call_costs"], "tree.call_costs", len(classes))
    walk = None
    if "walk" in found:
        walk = _read_walk(found["walk"], n_branches, n_features, len(classes))
    return TreeModel(
        parameters=TreeParameters(weights, thresholds, leaves),
        steepness=real(found["steepness"], "tree.steepness", 1e-300, LIMITS.number),
        scaling=scaling,
        classes=classes,
        feature_names=names,
        summary=summary,
        zero_threshold=real(found["zero_threshold"], "tree.zero_threshold", 0.0, 1.0),
        distributions=shares,
        call_costs=costs,
        walk=walk,
        monotone=_read_monotone(found["monotone"], n_features, len(classes))
        if "monotone" in found
        else None,
    )


def _read_monotone(value: Any, n_features: int, n_classes: int) -> MonotoneEffects:
    where = "tree.monotone"
    found = entries(value, where, ("effects", "levels"))
    signs, columns = [], []
    for one in items(found["effects"], f"{where}.effects"):
        effect = entries(one, f"{where}.effects", ("column", "sign", "features"))
        sign = whole(effect["sign"], f"{where}.effects.sign", -1, 1)
        signs.append((whole(effect["column"], f"{where}.effects.column", 0, 2**31), sign or 1))
        listed = items(effect["features"], f"{where}.effects.features")
        last = n_features - 1
        columns.append(tuple(whole(j, f"{where}.effects.features", 0, last) for j in listed))
    levels = [
        whole(level, f"{where}.levels", 0, n_classes - 1)
        for level in items(found["levels"], f"{where}.levels", n_classes)
    ]
    return MonotoneEffects(tuple(signs), tuple(levels), tuple(columns))


def _read_branch(value: Any, where: str, n_features: int) -> tuple[float, list[int], FloatArray]:
    branch = entries(value, where, ("threshold", "features", "weights"))
    used = [
        whole(j, f"{where}.features", 0, n_features - 1)
        for j in items(branch["features"], f"{where}.features")
    ]
    if len(set(used)) < len(used):
        raise ModelFileError(f"{where}.features of the model file names a feature twice.")
    # Interior points may lie outside the box by their tolerance.
    sizes = reals(branch["weights"], f"{where}.weights", len(used), -LIMITS.weight, LIMITS.weight)
    return (
        real(branch["threshold"], f"{where}.threshold", -LIMITS.weight, LIMITS.weight),
        used,
        sizes,
    )


def _read_leaves(value: Any, where: str, n_leaves: int, n_classes: int) -> FloatArray:
    """Class shares, (n_classes, n_leaves), from a list for each leaf."""
    read = []
    for i, leaf in enumerate(items(value, where, n_leaves)):
        place = f"{where}[{i}]"
        shares = reals(leaf, place, n_classes, -LIMITS.share_error, 1 + LIMITS.share_error)
        if abs(shares.sum() - 1) > LIMITS.share_error:
            raise ModelFileError(
                f"the class shares of {place} of the model file do not add up to one."
            )
        read.append(shares)
    return np.array(read).T


def _read_costs(value: Any, where: str, n_classes: int) -> FloatArray:
    lines = items(value, where, n_classes)
    return np.array(
        [
            reals(line, f"{where}[{y}]", n_classes, 0.0, LIMITS.number)
            for y, line in enumerate(lines)
        ]
    )


# --- the section "edits": what was changed by hand ------------------------------------------------


def _written_edits(edits: Edits) -> dict[str, Any]:
    listed = [
        {
            "date": edit.date,
            "verb": edit.verb,
            "arguments": {name: _plain(value) for name, value in edit.arguments.items()},
            "reason": edit.reason,
        }
        for edit in edits.listed
    ]
    return {
        "list": listed,
        "weights": [list(pair) for pair in edits.weights],
        "thresholds": list(edits.thresholds),
        "leaves": list(edits.leaves),
    }


def _read_edits(value: Any, model: TreeModel) -> Edits:
    found = entries(value, "edits", ("list", "weights", "thresholds", "leaves"))
    n_branches, n_features = model.topology.n_branches, model.parameters.n_features
    listed = []
    for i, one in enumerate(items(found["list"], "edits.list")):
        where = f"edits.list[{i}]"
        edit = entries(one, where, ("date", "verb", "arguments", "reason"))
        reason = edit["reason"]
        if not isinstance(edit["arguments"], dict):
            raise ModelFileError(f"{where}.arguments of the model file must be an object.")
        given = {
            text(name, f"{where}.arguments"): _read_plain(content, f"{where}.arguments")
            for name, content in edit["arguments"].items()
        }
        listed.append(
            Edit(
                text(edit["verb"], f"{where}.verb"),
                given,
                text(edit["date"], f"{where}.date"),
                None if reason is None else text(reason, f"{where}.reason"),
            )
        )

    def places(name: str, most: int) -> tuple[int, ...]:
        return tuple(
            whole(v, f"edits.{name}", 0, most) for v in items(found[name], f"edits.{name}")
        )

    weights = []
    for pair in items(found["weights"], "edits.weights"):
        t, j = items(pair, "edits.weights", 2)
        weights.append(
            (
                whole(t, "edits.weights", 0, n_branches - 1),
                whole(j, "edits.weights", 0, n_features - 1),
            )
        )
    return Edits(
        tuple(listed), tuple(weights), places("thresholds", n_branches - 1),
        places("leaves", n_branches),
    )  # fmt: skip
