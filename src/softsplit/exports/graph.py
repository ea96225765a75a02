"""A tree as an ONNX graph, in double precision: the program with a node for each operation.

Cells, definitions and answers have the shape (n, 1). Of a table of numbers they are gathered from
the input ``X`` (n, p). A table of more than numbers has an input of shape (n, 1) for each column in
use: levels come as text, "" for a missing value; numbers, truth values (1 and 0) and dates (days
since 1970-01-01) as doubles, NaN for a missing value. The rank of a quantile scaling is a sum over
the pieces between its knots,

    rank(x) = r_0 + sum_i (r_{i+1} - r_i) * clip((x - knot_i) / (knot_{i+1} - knot_i), 0, 1).
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from softsplit.exports.expressions import (
    MISSING,
    UNLISTED,
    Column,
    Expression,
    Interpolate,
    Op,
    ValueLookup,
)
from softsplit.exports.printing import Printer, model_in
from softsplit.exports.program import TreeProgram, program_of
from softsplit.support.output_files import PathName, write_file

# Versions of the operators, of those for texts, and of the format.
OPSET, TEXT_OPSET, FORMAT = 17, 2, 8

OPERATORS = {
    "sum": "Sum", "product": "Mul", "minus": "Sub", "divide": "Div", "negative": "Neg",
    "exp": "Exp", "abs": "Abs", "max": "Max", "min": "Min", "floor": "Floor", "if": "Where",
    "greater": "Greater", "at least": "GreaterOrEqual", "equal": "Equal", "missing": "IsNaN",
    "all": "And", "any": "Or",
}  # fmt: skip

# Operators that take two arguments where expressions have more.
OF_TWO = ("product", "all", "any")


def export_onnx(tree: Any, path: PathName | None = None) -> Any:
    """The tree as an ONNX model, written to ``path`` if one is given.

    Input ``X``: doubles, (n, n_features), NaN for a missing value. A tree for a table of more than
    numbers has an input of shape (n, 1) for each column in use, by its name: texts for those with
    levels, "" for a missing value; doubles for others, dates as days since 1970-01-01. Outputs
    ``label`` (n,) in the type of the labels, as ``predict`` says it, and ``probabilities``,
    doubles, (n, n_classes); of a tree for a number ``predicted``, doubles, (n,).
    Needs the extra ``softsplit[onnx]``.

    Parameters
    ----------
    tree : fitted SoftTreeClassifier, or a search that holds one; or what ``load_tree`` returns
    path : path, optional

    Returns
    -------
    onnx.ModelProto
    """
    model = model_in(tree)
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "ONNX export needs onnx; install it with pip install 'softsplit[onnx]'."
        ) from error
    coding = model.coding
    matrix = coding is None or coding.of_matrices
    graph = GraphPrinter(model.table_coding.names if matrix else None)
    proto = graph.model(program_of(model), _labels(model.classes))
    onnx.checker.check_model(proto)
    if path is not None:
        write_file(path, proto.SerializeToString())
    return proto


class GraphPrinter(Printer):
    """Nodes and constants in the order in which they are added; an expression is the name of the
    output of its node.

    Parameters
    ----------
    columns : tuple of str, optional
        The columns of a table of numbers, which come as one input.
    """

    def __init__(self, columns: tuple[str, ...] | None) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: dict[str, str] = {}
        self.columns = columns
        self.inputs: dict[str, Any] = {}

    def model(self, program: TreeProgram, labels: Any) -> Any:
        """The whole graph.

        1. Definitions, in their order.
        2. A column of zeros, by which numbers become columns of n rows.
        3. The label and the probabilities, or the number.
        """
        from onnx import TensorProto, helper

        # 1. Definitions.
        for name, expression in program.definitions.items():
            self.outputs[name] = self(expression)
        # 2. Zeros.
        cell = self._cell(program.columns[0] if program.columns else Column(0, "x0", "number"))
        zeros = self._add("Expand", self.number(0.0), self._add("Shape", cell))
        # 3. Answers.
        inputs = list(self.inputs.values())
        if not program.classes:
            number = self._add("Add", self(program.predicted), zeros)
            self._add("Reshape", number, self._constant(np.array([-1])), name="predicted")
            outputs = [helper.make_tensor_value_info("predicted", TensorProto.DOUBLE, ["n"])]
            return self._proto(inputs, outputs)
        at = self._add("Add", self(program.predicted), zeros)
        at = self._add("Reshape", self._whole(at), self._constant(np.array([-1])))
        self._add("Gather", self._constant(labels), at, name="label", axis=0)
        columns = [self._add("Add", self(p), zeros) for p in program.probabilities]
        self._add("Concat", *columns, name="probabilities", axis=1)
        shape: list[str | int | None] = ["n", len(program.classes)]
        label_type = helper.np_dtype_to_tensor_dtype(labels.dtype)
        outputs = [
            helper.make_tensor_value_info("label", label_type, ["n"]),
            helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, shape),
        ]
        return self._proto(inputs, outputs)

    def _proto(self, inputs: list[Any], outputs: list[Any]) -> Any:
        from onnx import helper

        return helper.make_model(
            helper.make_graph(self.nodes, "softsplit", inputs, outputs, self.constants),
            producer_name="softsplit",
            opset_imports=[
                helper.make_opsetid("", OPSET),
                helper.make_opsetid("ai.onnx.ml", TEXT_OPSET),
            ],
            ir_version=FORMAT,
        )

    # --- nodes ------------------------------------------------------------------------------------

    def _add(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """The name of the output of a new node."""
        from onnx import helper

        output = name or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def _constant(self, value: Any) -> str:
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def _whole(self, number: str) -> str:
        from onnx import TensorProto

        return self._add("Cast", number, to=TensorProto.INT64)

    # --- cells ------------------------------------------------------------------------------------

    def _cell(self, column: Column) -> str:
        """The cells of a column as they come in."""
        from onnx import TensorProto, helper

        kind = TensorProto.DOUBLE
        shape: list[str | int | None] = ["n", 1]
        if column.kind == "text":
            kind = TensorProto.STRING
        name = column.name
        if self.columns is not None:
            name, shape = "X", ["n", len(self.columns)]
        self.inputs[name] = helper.make_tensor_value_info(name, kind, shape)
        if self.columns is None:
            return name
        return self._add("Gather", name, self._constant(np.array([column.place])), axis=1)

    def read(self, column: Column) -> str:
        cell = self._cell(column)
        if column.kind == "truth":
            return self._add("Where", self._add("IsNaN", cell), self.number(MISSING), cell)
        if column.kind != "text":
            return cell
        places = self._add(
            "LabelEncoder",
            cell,
            domain="ai.onnx.ml",
            keys_strings=[*column.levels, ""],
            values_floats=[*map(float, range(len(column.levels))), float(MISSING)],
            default_float=float(UNLISTED),
        )
        from onnx import TensorProto

        return self._add("Cast", places, to=TensorProto.DOUBLE)

    # --- expressions ------------------------------------------------------------------------------

    def number(self, value: float) -> str:
        return self._constant(np.float64(value))

    def name(self, text: str) -> str:
        return self.outputs[text]

    def operation(self, op: Op) -> str:
        if op.kind == "divide" and op.args[0] == 1.0:
            # onnxruntime loses an output while it fuses 1 / x with the products that use it.
            return self._add("Reciprocal", self(op.args[1]))
        factor = op.args[0]
        if op.kind == "product" and isinstance(factor, float) and 0 < abs(factor - 1.0) < 1e-6:
            # onnxruntime takes such a factor for 1 and leaves it out: x f = x - x (1 - f).
            rest = self(Op("product", op.args[1:])) if len(op.args) > 2 else self(op.args[1])
            return self._add("Sub", rest, self._add("Mul", rest, self.number(1.0 - factor)))
        args, operator = map(self, op.args), OPERATORS[op.kind]
        if op.kind in OF_TWO:
            return reduce(lambda left, right: self._add(operator, left, right), args)
        return self._add(operator, *args)

    def lookup(self, lookup: ValueLookup) -> str:
        place = self._whole(self._add("Add", self(lookup.at), self.number(2.0)))
        return self._add("Gather", self._constant(np.array(lookup.values)), place, axis=0)

    def interpolate(self, curve: Interpolate) -> str:
        knots, ranks = np.array(curve.knots), np.array(curve.ranks)
        past = self._add("Sub", self(curve.at), self._constant(knots[:-1]))
        part = self._add("Div", past, self._constant(np.diff(knots)))
        part = self._add("Clip", part, self.number(0.0), self.number(1.0))
        # Not by MatMul: onnxruntime fuses it with a factor that it keeps in single precision.
        part = self._add("Mul", part, self._constant(np.diff(ranks)))
        rise = self._add("ReduceSum", part, self._constant(np.array([1])), keepdims=1)
        return self._add("Add", rise, self.number(ranks[0]))

    def choice(self, condition: Expression, yes: Expression, no: Expression) -> str:
        return self.operation(Op("if", (condition, yes, no)))

    def missing(self, cell: Expression) -> str:
        return self.operation(Op("missing", (cell,)))


def _labels(classes: Any) -> Any:
    """Labels in a type that ONNX knows."""
    if classes.dtype.kind in "iu":
        return classes.astype(np.uint64 if classes[-1] > np.iinfo(np.int64).max else np.int64)
    kinds = {"f": np.float64, "b": np.bool_}
    return classes.astype(kinds.get(classes.dtype.kind, object))
