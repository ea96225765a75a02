"""A fitted tree as plain dictionaries and lists, and back with everything checked.

A tree is stored in scaled units, as it was trained, so that a loaded tree predicts the same bits.
Only coefficients that are not zero are written. The section "tree" holds the branches and leaves
(tree_section.py), the optional section "table" the variables that the features were made of
(table_section.py); further optional sections are in record_sections.py.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softsplit.fitted.model import used_shares
from softsplit.fitted.summary import FEATURE_KINDS, FeatureSummary
from softsplit.persistence.limits import LIMITS
from softsplit.persistence.plain_values import read_plain, written_plain
from softsplit.persistence.reader import ModelFileError, entries, items, real, reals, text, whole
from softsplit.persistence.record_sections import (
    read_edits,
    read_held_out,
    read_profile,
    read_rates,
    written_edits,
    written_held_out,
    written_profile,
    written_rates,
)
from softsplit.persistence.saved import SavedTree
from softsplit.persistence.table_section import read_table_section, written_table
from softsplit.persistence.tree_section import read_tree, written_tree
from softsplit.settings.parameter import parameters
from softsplit.settings.table import CLASSIFIER
from softsplit.support.arrays import FloatArray
from softsplit.support.messages import shown
from softsplit.support.version import __version__
from softsplit.tree.scaling import SMALLEST_SPAN, Scaling, scaling_from
from softsplit.variables.columns import column_costs

if TYPE_CHECKING:
    from softsplit.estimators.classifier import SoftTreeClassifier

FORMAT = "softsplit-tree"
VERSION = 1


PARAMETERS = [one.name for one in parameters(*CLASSIFIER)]
"""Of a ``SoftTreeClassifier``, which need not be loaded to read a tree."""


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
        document["rates"] = [written_rates(one) for one in model.rates]
    if model.coding is not None or model.target is not None:
        document["table"] = written_table(model.coding, model.target)
    if model.held_out is not None:
        document["held_out"] = written_held_out(model.held_out)
    if model.edits:
        document["edits"] = written_edits(model.edits)
    if model.profile is not None:
        document["profile"] = written_profile(model.profile)
    return document


def from_document(document: Any) -> SavedTree:
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
        known["rates"] = tuple(read_rates(one, f"rates[{n}]") for n, one in enumerate(listed))
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
        known["held_out"] = read_held_out(document["held_out"], len(classes))
    if "edits" in document:
        known["edits"] = read_edits(document["edits"], model)
    model = replace(model, **known)
    if parameters.get("feature_costs") is not None:
        try:
            costs = column_costs(parameters["feature_costs"], model.column_names)
        except ValueError as error:
            raise ModelFileError(f"training.parameters of the model file: {error}") from None
        model = replace(model, column_costs=costs)
    if "profile" in document:
        model = replace(model, profile=read_profile(document["profile"], model))
    with np.errstate(over="ignore", invalid="ignore"):
        sound = all(np.all(np.isfinite(part)) for part in model.splits)
    if not sound:
        raise ModelFileError("the splits of the model file overflow in original units.")
    return SavedTree(model, named, parameters)


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
            written[name] = written_plain(value)
        except TypeError:
            omitted.append(name)
    return written, omitted


def _read_training(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of the estimator, and what is known of the training."""
    found = entries(value, "training", ("parameters", "omitted"), ("objective", "n_iter"))
    parameters = entries(found["parameters"], "training.parameters", (), PARAMETERS)
    for name in items(found["omitted"], "training.omitted"):
        if text(name, "training.omitted") not in PARAMETERS:
            raise ModelFileError(
                f"training.omitted of the model file has an unknown name {shown(name)}."
            )
    read = {n: read_plain(v, f"training.parameters.{n}") for n, v in parameters.items()}
    known: dict[str, Any] = {}
    if "objective" in found:
        known["objective"] = real(found["objective"], "training.objective")
    if "n_iter" in found:
        known["n_iter"] = whole(found["n_iter"], "training.n_iter", 0, 2**53)
    return read, known
