"""A fitted tree as an ONNX graph, in double precision.

    X (n, p) -> the columns in use -> scaled -> scores -> gates -> leaf probabilities -> classes

A tree for a table begins with the coding of its variables, an input for each variable in use:
levels come as text, "" for a missing value; numbers, truth values (1 and 0) and dates (days since
1970-01-01) come as doubles, NaN for a missing value. All these inputs have the shape (n, 1).

The rank of a quantile scaling is a sum over the pieces between its knots,

    rank(x) = r_0 + sum_i (r_{i+1} - r_i) * clip((x - knot_i) / (knot_{i+1} - knot_i), 0, 1).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from softsplit.fitted.leaf_shares import BELOW
from softsplit.fitted.model import TreeModel
from softsplit.fitted.walk import OPTIONS as WALK
from softsplit.fitted.walk import Walk
from softsplit.persistence.saved import SavedTree
from softsplit.support.arrays import FloatArray
from softsplit.support.output_files import write_file
from softsplit.tree.scaling import FAR, QuantileScaling
from softsplit.variables import Coding, Variable
from softsplit.variables.dates import DAY_MILLISECONDS, HOUR, NAMES, UNITS, WEEKDAY, YEAR_DAY
from softsplit.variables.variable import CATEGORY


@dataclass(frozen=True)
class GraphCodes:
    """Numbers of an ONNX graph."""

    unknown_level: float = -1.0
    """Code of a level that was not seen in training."""

    missing: float = -2.0
    """Code of a missing value."""

    opset: int = 17
    """Version of the operators."""

    ir_version: int = 8
    """Version of the format."""

    double: int = 11
    """Doubles (TensorProto.DOUBLE)."""

    saturated: float = 700.0
    """exp overflows beyond; the gate is saturated long before."""


CODES = GraphCodes()


class Nodes(Protocol):
    """A graph that nodes and constants can be added to."""

    def add(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """The name of the output of a new node."""

    def constant(self, value: Any) -> str:
        """The name of a constant."""


def table_inputs(coding: Coding, used: Sequence[int]) -> list[Any]:
    """Descriptions of the inputs."""
    from onnx import TensorProto, helper

    kinds: dict[str, int] = {}
    for variable in (coding.variables[i] for i in used):
        texts = variable.levels and not variable.part
        kinds[variable.column] = TensorProto.STRING if texts else TensorProto.DOUBLE
        if variable.since:
            kinds[variable.since] = TensorProto.DOUBLE
    return [helper.make_tensor_value_info(name, kind, ["n", 1]) for name, kind in kinds.items()]


def coded_table(graph: Nodes, coding: Coding, used: Sequence[int], matrix: str = "") -> str:
    """The columns of the variables in use, (n, n_columns), in their order.

    ``matrix`` is the input of a table of numbers.
    """
    blocks = []
    for i in used:
        column = coding.variables[i].column
        if matrix:
            place = graph.constant(np.array([coding.places[i]], np.int64))
            column = graph.add("Gather", matrix, place, axis=1)
        blocks += _columns(graph, coding.variables[i], column)
    return graph.add("Concat", *blocks, axis=1)


def _columns(graph: Nodes, variable: Variable, column: str) -> list[str]:
    """As ``Variable.coded``."""
    number, missing, strange = _cells(graph, variable, column)
    if variable.kind != CATEGORY:
        lost = missing if strange is None else graph.add("Or", missing, strange)
        columns = [graph.add("Where", lost, _double(graph, variable.middle), number)]
        if variable.knots:
            knots = graph.constant(np.array([variable.knots]))
            past = graph.add("Sub", columns[0], knots)
            columns.append(graph.add("Max", past, _double(graph, 0.0)))
    elif variable.shares:
        assert strange is not None
        lost = graph.add("Or", missing, strange)
        last = _double(graph, len(variable.levels))
        index = graph.add("Cast", graph.add("Where", lost, last, number), to=_type("INT64"))
        flat = graph.add("Reshape", index, graph.constant(np.array([-1], np.int64)))
        table = graph.constant(np.array(variable.shares, dtype=np.float64))
        columns = [graph.add("Gather", table, flat, axis=0)]
    else:
        assert strange is not None
        columns = _indicators(graph, variable, number, missing, strange)
    return [*columns, *([_as_double(graph, missing)] if variable.has_missing else [])]


def _cells(graph: Nodes, variable: Variable, column: str) -> tuple[str, str, str | None]:
    """Numbers, missing values and unlisted levels of a column of the input, each (n, 1)."""
    if variable.part:
        return _part_cells(graph, variable, column)
    if not variable.levels:
        missing = graph.add("IsNaN", column)
        return graph.add("Sub", column, _double(graph, variable.origin)), missing, None
    placed = graph.add(
        "LabelEncoder",
        column,
        domain="ai.onnx.ml",
        keys_strings=[*variable.levels, ""],
        values_floats=[*map(float, range(len(variable.levels))), CODES.missing],
        default_float=CODES.unknown_level,
    )
    number = _as_double(graph, placed)
    missing = graph.add("Equal", number, _double(graph, CODES.missing))
    return number, missing, graph.add("Equal", number, _double(graph, CODES.unknown_level))


def _part_cells(graph: Nodes, variable: Variable, column: str) -> tuple[str, str, str | None]:
    """As ``Variable.cells_of_days``, of a column of days since 1970-01-01."""
    per_day = _double(graph, DAY_MILLISECONDS)
    passed = graph.add("Round", graph.add("Mul", column, per_day))
    if variable.since:
        earlier = graph.add("Round", graph.add("Mul", variable.since, per_day))
        per_unit = _double(graph, DAY_MILLISECONDS / UNITS[variable.part])
        number = graph.add("Div", graph.add("Sub", passed, earlier), per_unit)
        return number, graph.add("IsNaN", number), None
    missing = graph.add("IsNaN", column)
    calendar = _Calendar(graph)
    whole = calendar.whole(passed, DAY_MILLISECONDS)
    if variable.part == HOUR:
        rest = calendar.rest(passed, DAY_MILLISECONDS)
        return calendar.whole(rest, DAY_MILLISECONDS / 24), missing, None
    if variable.part == YEAR_DAY:
        return calendar.day_of_year(whole), missing, None
    found = calendar.weekday(whole) if variable.part == WEEKDAY else calendar.month(whole)
    names = NAMES[variable.part]
    places = {level: float(i) for i, level in enumerate(variable.levels)}
    table = graph.constant(np.array([places.get(n, CODES.unknown_level) for n in names]))
    known = graph.add("Where", missing, _double(graph, 0.0), found)
    placed = graph.add("Gather", table, graph.add("Cast", known, to=_type("INT64")), axis=0)
    number = graph.add("Where", missing, _double(graph, CODES.missing), placed)
    return number, missing, graph.add("Equal", number, _double(graph, CODES.unknown_level))


class _Calendar:
    """The Gregorian calendar by whole numbers, of days since 1970-01-01 (Hinnant, 2013).

    Years begin in March, so that the day of a leap year comes last; 400 years have 146,097 days.
    """

    def __init__(self, graph: Nodes) -> None:
        self.graph = graph

    def plus(self, a: str, b: float | str, sign: str = "Add") -> str:
        return self.graph.add(sign, a, b if isinstance(b, str) else _double(self.graph, b))

    def whole(self, a: str, size: float) -> str:
        """How often ``size`` fits into a."""
        return self.graph.add("Floor", self.plus(a, size, "Div"))

    def rest(self, a: str, size: float) -> str:
        """What is left then."""
        return self.plus(a, self.plus(self.whole(a, size), size, "Mul"), "Sub")

    def weekday(self, days: str) -> str:
        """0 for Monday; 1970-01-01 was a Thursday."""
        return self.rest(self.plus(days, 3.0), 7.0)

    def _in_march_years(self, days: str) -> tuple[str, str]:
        """Years since a March 1 of a year divisible by 400, and days since the last March 1."""
        day = self.rest(self.plus(days, 719_468.0), 146_097.0)
        leap = self.plus(self.whole(day, 1_460.0), self.whole(day, 36_524.0), "Sub")
        leap = self.plus(leap, self.whole(day, 146_096.0))
        year = self.whole(self.plus(day, leap, "Sub"), 365.0)
        before = self.plus(self.plus(year, 365.0, "Mul"), self.whole(year, 4.0))
        before = self.plus(before, self.whole(year, 100.0), "Sub")
        return year, self.plus(day, before, "Sub")

    def month(self, days: str) -> str:
        """0 for January."""
        _, day = self._in_march_years(days)
        march = self.whole(self.plus(self.plus(day, 5.0, "Mul"), 2.0), 153.0)
        return self.rest(self.plus(march, 2.0), 12.0)

    def day_of_year(self, days: str) -> str:
        """1 for January 1."""
        year, day = self._in_march_years(days)
        zero = _double(self.graph, 0.0)
        leap = self.graph.add("Equal", self.rest(year, 4.0), zero)
        century = self.graph.add("Equal", self.rest(year, 100.0), zero)
        century = self.graph.add("And", century, self.plus(year, 0.5, "Greater"))
        leap = self.graph.add("And", leap, self.graph.add("Not", century))
        later = self.plus(self.plus(day, 60.0), _as_double(self.graph, leap))
        new_year = self.plus(day, 306.0, "Less")
        return self.graph.add("Where", new_year, later, self.plus(day, 305.0, "Sub"))


def _indicators(
    graph: Nodes, variable: Variable, number: str, missing: str, strange: str
) -> list[str]:
    middle = _double(graph, variable.middle)
    if not variable.whole:
        number = graph.add("Where", graph.add("Or", missing, strange), middle, number)
    elif not variable.has_missing:
        number = graph.add("Where", missing, middle, number)
    places = np.arange(0 if variable.whole else 1, len(variable.levels), dtype=np.float64)
    columns = []
    if len(places):
        columns.append(_as_double(graph, graph.add("Equal", number, graph.constant(places[None]))))
    return [*columns, *([_as_double(graph, strange)] if variable.other else [])]


def _double(graph: Nodes, value: float) -> str:
    return graph.constant(np.float64(value))


def _as_double(graph: Nodes, name: str) -> str:
    return graph.add("Cast", name, to=_type("DOUBLE"))


def _type(name: str) -> int:
    from onnx import TensorProto

    return int(getattr(TensorProto, name))


# --- the graph of a tree -------------------------------------------------------------------------


def export_onnx(estimator: Any, path: str | os.PathLike[str] | None = None) -> Any:
    """The tree as an ONNX model, written to ``path`` if one is given.

    Input ``X``: doubles, (n, n_features), NaN for a missing value. A tree for a table of more than
    numbers has an input of shape (n, 1) for each variable in use, by its name: texts for those with
    levels, "" for a missing value; doubles for others, dates as days since 1970-01-01. Outputs
    ``label`` (n,) in the type of the labels, as ``predict`` says it, and ``probabilities``,
    doubles, (n, n_classes).
    Needs the extra ``softsplit[onnx]``.

    Parameters
    ----------
    estimator : fitted SoftTreeClassifier, or a search that holds one; or what ``load_tree`` returns
    path : path, optional

    Returns
    -------
    onnx.ModelProto
    """
    if not isinstance(estimator, SavedTree):
        from softsplit.persistence.estimators import classifier_in

        estimator = classifier_in(estimator)
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "ONNX export needs onnx; install it with pip install 'softsplit[onnx]'."
        ) from error
    model = _Graph(estimator.tree_).build()
    onnx.checker.check_model(model)
    if path is not None:
        write_file(path, model.SerializeToString())
    return model


class _Graph:
    """Nodes and constants in the order in which they are added."""

    def __init__(self, tree: TreeModel) -> None:
        self.tree = tree
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.rows, self.places = "X", np.arange(tree.parameters.n_features)
        self.scaled, self.used = "", np.zeros(0, dtype=np.intp)

    def constant(self, value: Any) -> str:
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        output = name or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def build(self) -> Any:
        from onnx import TensorProto, helper

        inputs = self._inputs()
        leaves = self._leaves(self._scores())
        tree, last = self.tree, "probabilities"
        factors = tree.class_factors
        shares = self._mixture(leaves, last if factors is None else None)
        if tree.walk is not None:
            arrived = self.add("ArgMax", self._walked(tree.walk), axis=1, keepdims=0)
            classes = self.constant(tree.walk.classes.astype(np.int64))
            best = self.add("Gather", classes, arrived, axis=0)
        else:
            votes = shares
            if tree.leaf_votes is not tree.leaf_shares:
                votes = self.add("MatMul", leaves, self.constant(tree.leaf_votes.T))
            best = self.add("ArgMax", votes, axis=1, keepdims=0)
        if factors is not None:
            self._consistent(shares, best, factors, last)
        labels = _labels(self.tree.classes)
        self.add("Gather", self.constant(labels), best, name="label", axis=0)
        label_type = helper.np_dtype_to_tensor_dtype(labels.dtype)
        double, k = TensorProto.DOUBLE, self.tree.parameters.n_groups
        graph = helper.make_graph(
            self.nodes,
            "softsplit",
            inputs,
            [
                helper.make_tensor_value_info("label", label_type, ["n"]),
                helper.make_tensor_value_info("probabilities", double, ["n", k]),
            ],
            self.constants,
        )
        return helper.make_model(
            graph,
            producer_name="softsplit",
            opset_imports=[
                helper.make_opsetid("", CODES.opset),
                helper.make_opsetid("ai.onnx.ml", 2),
            ],
            ir_version=CODES.ir_version,
        )

    def _inputs(self) -> list[Any]:
        """Descriptions of the inputs; the columns of a table are coded first."""
        from onnx import TensorProto, helper

        coding, n_features = self.tree.coding, self.tree.parameters.n_features
        if coding is None:
            return [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n", n_features])]
        used = self.tree.selected_variables.tolist() or [0]
        kept = np.flatnonzero(np.isin(coding.homes, used))
        self.places = np.full(n_features, 0)
        self.places[kept] = np.arange(len(kept))
        if coding.of_matrices:
            self.rows = coded_table(self, coding, used, "X")
            n_features = len(coding.names)
            return [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n", n_features])]
        self.rows = coded_table(self, coding, used)
        return table_inputs(coding, used)

    def _gathered(self, features: Any) -> str:
        """Some of the columns; a missing value among plain numbers counts as their middle."""
        columns = self.constant(self.places[features].astype(np.int64))
        found = self.add("Gather", self.rows, columns, axis=1)
        if self.tree.coding is not None:
            return found
        middles = [self.tree.table_coding.variables[int(j)].middle for j in features]
        return self.add("Where", self.add("IsNaN", found), self.constant(np.array(middles)), found)

    def _scores(self) -> str:
        """Scores times steepness, (n, n_branches)."""
        parameters = self.tree.parameters
        # Without any feature, one column with weights of zero keeps the number of rows.
        used = np.flatnonzero(np.any(parameters.weights, axis=1))
        used = used if len(used) else np.array([0])
        if isinstance(self.tree.scaling, QuantileScaling):
            scaled = self._ranks(self.tree.scaling, used)
        else:
            arrays = self.tree.scaling.arrays()
            columns = self._gathered(used)
            centred = self.add("Sub", columns, self.constant(arrays["low"][used]))
            scaled = self.add("Div", centred, self.constant(arrays["span"][used]))
        far = [self.constant(np.float64(end)) for end in (-FAR, FAR)]
        scaled = self.add("Clip", scaled, *far)
        self.scaled, self.used = scaled, used
        sums = self.add(
            "MatMul", scaled, self.constant(parameters.weights[used] / parameters.n_features)
        )
        scores = self.add("Sub", sums, self.constant(parameters.thresholds))
        return self.add("Mul", scores, self.constant(np.float64(self.tree.steepness)))

    def _ranks(self, scaling: QuantileScaling, used: Any) -> str:
        ranks = [self._rank(int(j), *scaling.curve(int(j))) for j in used]
        return self.add("Concat", *ranks, axis=1)

    def _rank(self, feature: int, knots: FloatArray, ranks: FloatArray) -> str:
        column = self._gathered(np.array([feature]))
        if len(knots) == 1:
            return self.add("Mul", column, self.constant(np.zeros(1)))
        past = self.add("Sub", column, self.constant(knots[:-1]))
        part = self.add("Div", past, self.constant(np.diff(knots)))
        ends = [self.constant(np.float64(end)) for end in (0.0, 1.0)]
        part = self.add("Clip", part, *ends)
        rise = self.add("MatMul", part, self.constant(np.diff(ranks)[:, None]))
        return self.add("Add", rise, self.constant(ranks[:1]))

    def _leaves(self, scores: str) -> str:
        """Leaf probabilities, (n, n_leaves), one level of the tree after the other."""
        bounds = [self.constant(np.float64(end)) for end in (-CODES.saturated, CODES.saturated)]
        shut = self.add("Clip", scores, *bounds)
        one = self.constant(np.float64(1.0))
        gates = []
        for exponent in (self.add("Neg", shut), shut):
            odds = self.add("Add", self.add("Exp", exponent), one)
            gates.append(self.add("Unsqueeze", self.add("Div", one, odds), self._ints(2)))
        return self._reach(*gates)

    def _walked(self, walk: Walk) -> str:
        """1 for the leaf at which each row arrives, else 0, (n, n_leaves); as ``Walk.holds``."""
        raw = self._gathered(self.used)
        sign = np.where(walk.upwards, 1.0, -1.0)
        signed = (walk.coefficients[:, self.used] * sign[:, None]).T
        sums, sizes = "", ""
        for values, of in ((raw, ~walk.ranked), (self.scaled, walk.ranked)):
            if not np.any(of):
                continue
            part = np.where(of, signed, 0.0)
            total = self.add("MatMul", values, self.constant(part))
            size = self.add("MatMul", self.add("Abs", values), self.constant(np.abs(part)))
            sums = self.add("Add", sums, total) if sums else total
            sizes = self.add("Add", sizes, size) if sizes else size
        above = self.add("Sub", sums, self.constant(sign * walk.thresholds))
        size = self.add("Add", sizes, self.constant(np.abs(walk.thresholds)))
        least = self.add("Mul", size, self.constant(np.float64(WALK.tie)))
        left = self.add("Cast", self.add("Greater", above, least), to=CODES.double)
        right = self.add("Sub", self.constant(np.float64(1.0)), left)
        return self._reach(*(self.add("Unsqueeze", gate, self._ints(2)) for gate in (left, right)))

    def _reach(self, left: str, right: str) -> str:
        """Reach of the leaves from gates of shape (n, n_branches, 1)."""
        both = self.add("Concat", left, right, axis=2)  # (n, n_branches, 2)
        reach = ""
        for level in range(self.tree.topology.depth):
            first = 2**level - 1
            here = self.add("Slice", both, *map(self._ints, (first, 2 * first + 1, 1)))
            if level:
                above = self.add("Unsqueeze", reach, self._ints(2))
                here = self.add("Mul", here, above)
            reach = self.add("Reshape", here, self.constant(np.array([-1, 2 ** (level + 1)])))
        return reach

    def _ints(self, value: int) -> str:
        return self.constant(np.array([value], np.int64))

    def _mixture(self, leaves: str, name: str | None) -> str:
        raw = self.add("MatMul", leaves, self.constant(self.tree.leaf_shares.T))
        return self._normalised(raw, name)

    def _normalised(self, raw: str, name: str | None = None) -> str:
        total = self.add("ReduceSum", raw, self._ints(1), keepdims=1)
        return self.add("Div", raw, total, name=name)

    def _consistent(self, shares: str, best: str, factors: FloatArray, name: str) -> str:
        """As ``consistent_with`` of fitted/leaf_shares.py, where another class is above."""
        predicted = self.add("Unsqueeze", best, self._ints(1))
        weighed = self.add("Mul", shares, self.constant(factors[None, :]))
        own = self.add("GatherElements", weighed, predicted, axis=1)
        own = self.add("Max", own, self.constant(np.float64(np.finfo(float).tiny)))
        cap = self.add("Mul", own, self.constant(np.float64(BELOW)))
        places = self.constant(np.arange(len(self.tree.classes))[None, :])
        is_own = self.add("Equal", predicted, places)
        level = self.add("Where", is_own, own, self.add("Min", weighed, cap))
        level = self._normalised(self.add("Div", level, self.constant(factors[None, :])))
        most = self.add("Unsqueeze", self.add("ArgMax", weighed, axis=1, keepdims=0), self._ints(1))
        return self.add("Where", self.add("Equal", most, predicted), shares, level, name=name)


def _labels(classes: Any) -> Any:
    """Labels in a type that ONNX knows."""
    if classes.dtype.kind in "iu":
        return classes.astype(np.uint64 if classes[-1] > np.iinfo(np.int64).max else np.int64)
    if classes.dtype.kind in "UO" and all(isinstance(v, str) for v in classes.tolist()):
        return classes.astype(object)
    if classes.dtype.kind in "bf":
        return classes.astype(np.float64 if classes.dtype.kind == "f" else np.bool_)
    raise ValueError(
        f"class labels of type {classes.dtype} cannot be exported; "
        "use strings, integers, booleans or floats."
    )
