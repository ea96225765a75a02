"""A fitted tree as the document of a model file, and back with everything checked.

A tree is stored in scaled units, as it was trained, so that a loaded tree predicts the same bits.
Only coefficients that are not zero are written. ``Document`` is the file; its sections are records
of this module, of tree_record.py, table_record.py and further_records.py. Its JSON schema is
model-1.schema.json (schema.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import UNSET, Meta
from numpy.typing import NDArray

from softsplit.fitted.model import TreeModel, used_shares
from softsplit.fitted.summary import FeatureSummary
from softsplit.persistence.further_records import (
    EditsRecord,
    HeldOutRecord,
    ProfileRecord,
    RequirementRecord,
)
from softsplit.persistence.number_record import NumbersRecord
from softsplit.persistence.records import (
    LABEL_CHARACTERS,
    LARGEST,
    ModelFileError,
    Number,
    Part,
    Place,
    Record,
    Text,
    checked,
    read_plain,
    require,
    sized,
    written_plain,
)
from softsplit.persistence.saved import SavedTree
from softsplit.persistence.table_record import TableRecord
from softsplit.persistence.tree_record import TreeRecord
from softsplit.settings.parameter import parameters
from softsplit.settings.regression import REGRESSOR
from softsplit.settings.table import CLASSIFIER
from softsplit.support.messages import shown
from softsplit.support.version import __version__
from softsplit.tree.scaling import SMALLEST_SPAN, Scaling, scaling_from
from softsplit.variables.columns import column_costs

if TYPE_CHECKING:
    from softsplit.estimators.classifier import SoftTreeClassifier
    from softsplit.estimators.leaf_tree import LeafTree

FORMAT = "softsplit-tree"

# Number n makes a document of version n + 1 one of the next version.
UPGRADES: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = ()

VERSION = len(UPGRADES) + 1

# Of both estimators, which need not be loaded to read a tree.
PARAMETERS = [parameter.name for parameter in parameters(*CLASSIFIER, *REGRESSOR)]

# --- classes --------------------------------------------------------------------------------------


# The type of labels in a file and in an array.
LABEL_TYPES: dict[str, tuple[Any, Any]] = {
    "string": (str, None),
    "object": (str, object),  # Python strings in an array of objects
    "integer": (int, np.int64),  # or uint64, where one is 2^63 or more
    "number": (int | float, np.float64),
    "boolean": (bool, np.bool_),
}


class Labels(Record):
    """Labels in ascending order, all of this type; an "object" is a Python string."""

    type: Literal["string", "object", "integer", "number", "boolean"]
    values: Annotated[list[Text | int | Number | bool], Meta(min_length=2)]

    @classmethod
    def of(cls, classes: NDArray[Any]) -> Labels:
        # Python has no floats of other lengths.
        plain = classes.astype(np.float64) if classes.dtype.kind == "f" else classes
        values = plain.tolist()
        kinds = {"U": "string", "b": "boolean", "i": "integer", "u": "integer", "f": "number"}
        kind = kinds.get(classes.dtype.kind)
        if classes.dtype.kind == "O" and all(type(value) is str for value in values):
            kind = "object"
        if kind is None or not np.array_equal(plain, classes):
            raise ValueError(
                f"class labels of type {classes.dtype} cannot be written to a model file; "
                "use strings, integers, booleans or floats."
            )
        return cls(kind, values)  # type: ignore[arg-type]

    def read(self) -> NDArray[Any]:
        values, (kind, dtype) = self.values, LABEL_TYPES[self.type]
        require(
            all(isinstance(v, kind) and (kind is bool or type(v) is not bool) for v in values),
            f"classes of the model file do not fit their type {self.type!r}.",
        )
        require(
            all(a < b for a, b in pairwise(values)),  # type: ignore[operator]
            "the classes of the model file must be distinct and in order.",
        )
        if kind is str:
            require(
                len(values) * max(len(str(v)) for v in values) <= LABEL_CHARACTERS,
                "the class labels of the model file are too long to be loaded.",
            )
        if kind is int and values[-1] >= 2**63:  # type: ignore[operator]
            dtype = np.uint64
        try:
            return np.array(values, dtype)
        except OverflowError:
            raise ModelFileError(
                "the classes of the model file do not fit one type of integer."
            ) from None


# --- features and scaling -------------------------------------------------------------------------


class Features(Record):
    """Names (null if there are none, or if they follow from the table), training ranges in original
    units, means of the scaled training values, and importances (null if they are not known)."""

    names: list[Text] | None
    low: Annotated[list[Number], Meta(min_length=1)]
    high: list[Number]
    scaled_mean: list[Number]
    kinds: list[Literal["number", "integer", "binary"]]
    importances: list[Part] | None

    @classmethod
    def of(cls, tree: SoftTreeClassifier | LeafTree) -> Features:
        model = tree.tree_
        named = hasattr(tree, "feature_names_in_") and model.coding is None
        names = list(model.feature_names) if named else None
        return cls.like(model.summary, names=names, importances=model.importances)

    def read(self) -> tuple[tuple[str, ...], FeatureSummary]:
        """The names, and what the tree knows of the training rows."""
        n = len(self.low)
        for name in ("high", "scaled_mean", "kinds", "names", "importances"):
            if getattr(self, name) is not None:
                sized(getattr(self, name), n, f"features.{name}")
        low, high, mean = (np.array(v, float) for v in (self.low, self.high, self.scaled_mean))
        require(
            np.all(low <= high),
            f"feature {int(np.argmax(low > high))} of the model file has low above high.",
        )
        names = tuple(f"x{j}" for j in range(n)) if self.names is None else tuple(self.names)
        require(len(set(names)) == n, "two features of the model file have the same name.")
        return names, FeatureSummary(low, high, mean, np.array(self.kinds))


class ScalingRecord(Record):
    """Linear scalings: (x - low) / span; the span of a constant column, which becomes 0, is null.
    "quantile": linear interpolation from knots to ranks; those of feature j are from starts[j] up
    to starts[j + 1]."""

    kind: Literal["minmax", "standard", "identity", "quantile"]
    low: list[Number] | None = None
    span: list[Annotated[float, Meta(ge=SMALLEST_SPAN, le=LARGEST)] | None] | None = None
    knots: list[Number] | None = None
    ranks: list[Number] | None = None
    starts: list[Place] | None = None

    @classmethod
    def of(cls, scaling: Scaling) -> ScalingRecord:
        arrays = {name: array.tolist() for name, array in scaling.arrays().items()}
        if "span" in arrays:
            arrays["span"] = [None if v == np.inf else v for v in arrays["span"]]
        return cls(scaling.kind, **arrays)  # type: ignore[arg-type]

    def read(self, n_features: int) -> Scaling:
        arrays = {k: v for k, v in msgspec.structs.asdict(self).items() if v is not None}
        kind = arrays.pop("kind")
        if self.span is not None:
            arrays["span"] = [np.inf if v is None else v for v in self.span]
        try:
            scaling = scaling_from(kind, arrays)
        except ValueError as error:
            raise ModelFileError(f"scaling of the model file: {error}") from None
        require(
            scaling.n_features == n_features,
            f"scaling of the model file is for {scaling.n_features} features, not {n_features}.",
        )
        return scaling


# --- training -------------------------------------------------------------------------------------

Parameters: Any = msgspec.defstruct(
    "Parameters",
    [(name, Any, UNSET) for name in PARAMETERS],
    bases=(Record,),
    namespace={"__doc__": "Parameters of the estimator as plain values."},
)


class Training(Record):
    """Parameters of the estimator, those that are no plain values, and how training ended."""

    parameters: Parameters
    omitted: list[Text]
    objective: Number | None = None
    n_iter: Annotated[int, Meta(ge=0, le=2**53)] | None = None

    @classmethod
    def of(cls, tree: SoftTreeClassifier | LeafTree) -> Training:
        written, omitted = {}, []
        for name, value in tree.get_params(deep=False).items():
            try:
                written[name] = written_plain(value)
            except TypeError:
                omitted.append(name)
        model = tree.tree_
        return cls(Parameters(**written), omitted, model.objective, model.n_iter)

    def read(self) -> dict[str, Any]:
        """The parameters."""
        for name in self.omitted:
            require(
                name in PARAMETERS,
                f"training.omitted of the model file has an unknown name {shown(name)}.",
            )
        return {
            name: read_plain(value, f"training.parameters.{name}")
            for name, value in msgspec.structs.asdict(self.parameters).items()
            if value is not UNSET
        }


# --- the file -------------------------------------------------------------------------------------


class Document(Record):
    """A model file. docs/model-files.md says how answers follow from it; lengths that depend on one
    another (features, branches, leaves, classes) are checked by the reader. A tree has classes or
    numbers."""

    format: Literal["softsplit-tree"]
    version: Literal[1]
    software: Text
    classes: Labels | None
    features: Features
    scaling: ScalingRecord
    tree: TreeRecord
    training: Training
    rates: tuple[RequirementRecord, ...] = ()
    table: TableRecord | None = None
    held_out: HeldOutRecord | None = None
    edits: EditsRecord | None = None
    profile: ProfileRecord | None = None
    numbers: NumbersRecord | None = None


def to_document(tree: SoftTreeClassifier | LeafTree) -> dict[str, Any]:
    """The file's content."""
    model = tree.tree_
    tabular = model.coding is not None or model.target is not None
    document = Document(
        format="softsplit-tree",
        version=1,
        software=f"softsplit {__version__}",
        classes=Labels.of(model.classes) if model.numbers is None else None,
        features=Features.of(tree),
        scaling=ScalingRecord.of(model.scaling),
        tree=TreeRecord.of(model),
        training=Training.of(tree),
        rates=tuple(map(RequirementRecord.written, model.rates)),
        table=TableRecord.of(model.coding, model.target) if tabular else None,
        held_out=None if model.held_out is None else HeldOutRecord.like(model.held_out),
        edits=EditsRecord.of(model.edits) if model.edits else None,
        profile=None if model.profile is None else ProfileRecord.of(model.profile),
        numbers=None if model.numbers is None else NumbersRecord.of(model.numbers),
    )
    # Arrays and numbers of numpy become plain ones.
    return msgspec.to_builtins(document, enc_hook=lambda value: value.tolist())


def from_document(document: Any) -> SavedTree:
    """What the file holds; a ``ModelFileError`` with one sentence if anything is amiss.

    1. Format, version, and upgrades from older versions.
    2. Types and ranges of all values.
    3. The sections, each checked against those before it.
    4. Splits in original units, which must be finite.
    """
    # 1. Format and version.
    known_format = isinstance(document, dict) and document.get("format") == FORMAT
    require(known_format, f"this is no model file of softsplit: its format is not {FORMAT!r}.")
    version = document.get("version")
    require(
        type(version) is int and version >= 1,
        f"version {shown(version)} of the model file is no version.",
    )
    require(
        version <= VERSION,
        f"the model file has version {shown(version)}, this softsplit reads up to {VERSION}; "
        "install a newer softsplit.",
    )
    for upgrade in UPGRADES[version - 1 :]:
        document = upgrade(document)
    # 2. Types and ranges.
    record = checked(document, Document)
    # 3. Sections.
    model = _read_model(record)
    parameters = record.training.read()
    if parameters.get("feature_costs") is not None:
        try:
            costs = column_costs(parameters["feature_costs"], model.column_names)
        except ValueError as error:
            raise ModelFileError(f"training.parameters of the model file: {error}") from None
        model = replace(model, column_costs=costs)
    # 4. Splits in original units.
    with np.errstate(over="ignore", invalid="ignore"):
        finite = all(np.all(np.isfinite(part)) for part in model.splits)
    require(finite, "the splits of the model file overflow in original units.")
    named = record.features.names is not None if model.coding is None else model.coding.named
    return SavedTree(model, named, parameters)


def _read_model(record: Document) -> TreeModel:
    require(
        (record.classes is None) != (record.numbers is None),
        "the model file must hold classes or numbers.",
    )
    # 1. The tree, by what it predicts and of which features.
    classes = np.zeros(0) if record.classes is None else record.classes.read()
    names, summary = record.features.read()
    scaling = record.scaling.read(len(names))
    model = record.tree.read(scaling, classes, names, summary)
    # 2. What is known of its training.
    parts: dict[str, Any] = {
        "objective": record.training.objective,
        "n_iter": record.training.n_iter,
        "rates": tuple(rate.read(f"rates[{i}]") for i, rate in enumerate(record.rates)),
    }
    if record.numbers is not None:
        parts["numbers"] = record.numbers.read(model.topology.n_leaves, len(names))
        means = replace(model.parameters, leaf_values=parts["numbers"].means[None])
        model = replace(model, numbers=parts["numbers"], parameters=means)
    if record.features.importances is not None:
        importances = np.array(record.features.importances)
        used = model.columns_in_use[:, None].astype(float)
        weights = model.parameters.weights if model.numbers is None else used
        parts["importances"] = used_shares(importances, weights)
    # 3. The table that its features were made of.
    if record.table is not None:
        parts["target"] = record.table.target
        coding = record.table.read()
        if coding is not None:
            require(
                len(coding.column_names) == len(names),
                "table of the model file does not fit the features of its tree.",
            )
            parts |= {"coding": coding, "feature_names": coding.column_names}
            if coding.pointed and model.monotone is not None:
                parts["monotone"] = model.monotone.on(coding)
    # 4. What is stored of rows, which needs the parts before.
    if record.held_out is not None:
        parts["held_out"] = record.held_out.read(len(classes))
    if record.edits is not None:
        parts["edits"] = record.edits.read(model)
    model = replace(model, **parts)
    if record.profile is not None:
        model = replace(model, profile=record.profile.read(model))
    return model
