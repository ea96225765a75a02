"""The part of an ONNX graph that codes a table: an input for each variable in use.

Levels come as text, "" for a gap; numbers, truth values (1 and 0) and dates (days since 1970-01-01)
come as doubles, NaN for a gap. All inputs have the shape (n, 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from softsplit.variables import Coding, Variable
from softsplit.variables.variable import CATEGORY

STRANGE, GAP = -1.0, -2.0
"""In the place of a level: one that has none, and no text at all."""


class Nodes(Protocol):
    """A graph that nodes and constants can be added to."""

    def add(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """The name of the output of a new node."""

    def constant(self, value: Any) -> str:
        """The name of a constant."""


def table_inputs(coding: Coding, used: Sequence[int]) -> list[Any]:
    """Descriptions of the inputs."""
    from onnx import TensorProto, helper

    variables = [coding.variables[i] for i in used]
    kinds = [TensorProto.STRING if v.levels else TensorProto.DOUBLE for v in variables]
    return [
        helper.make_tensor_value_info(v.name, kind, ["n", 1])
        for v, kind in zip(variables, kinds, strict=True)
    ]


def coded_table(graph: Nodes, coding: Coding, used: Sequence[int]) -> str:
    """The columns of the variables in use, (n, n_columns), in their order."""
    blocks = [block for i in used for block in _columns(graph, coding.variables[i])]
    return graph.add("Concat", *blocks, axis=1)


def _columns(graph: Nodes, variable: Variable) -> list[str]:
    """As ``Variable.coded``."""
    number, gap, strange = _cells(graph, variable)
    if variable.kind != CATEGORY:
        lost = gap if strange is None else graph.add("Or", gap, strange)
        columns = [graph.add("Where", lost, _double(graph, variable.middle), number)]
    elif variable.shares:
        assert strange is not None
        lost = graph.add("Or", gap, strange)
        last = _double(graph, len(variable.levels))
        index = graph.add("Cast", graph.add("Where", lost, last, number), to=_type("INT64"))
        flat = graph.add("Reshape", index, graph.constant(np.array([-1], np.int64)))
        table = graph.constant(np.array(variable.shares, dtype=np.float64))
        columns = [graph.add("Gather", table, flat, axis=0)]
    else:
        assert strange is not None
        columns = _indicators(graph, variable, number, gap, strange)
    return [*columns, *([_as_double(graph, gap)] if variable.gaps else [])]


def _cells(graph: Nodes, variable: Variable) -> tuple[str, str, str | None]:
    """Numbers, gaps and strange levels of an input, each (n, 1)."""
    if not variable.levels:
        gap = graph.add("IsNaN", variable.name)
        return graph.add("Sub", variable.name, _double(graph, variable.origin)), gap, None
    placed = graph.add(
        "LabelEncoder",
        variable.name,
        domain="ai.onnx.ml",
        keys_strings=[*variable.levels, ""],
        values_floats=[*map(float, range(len(variable.levels))), GAP],
        default_float=STRANGE,
    )
    number = _as_double(graph, placed)
    gap = graph.add("Equal", number, _double(graph, GAP))
    return number, gap, graph.add("Equal", number, _double(graph, STRANGE))


def _indicators(graph: Nodes, variable: Variable, number: str, gap: str, strange: str) -> list[str]:
    middle = _double(graph, variable.middle)
    if not variable.whole:
        number = graph.add("Where", graph.add("Or", gap, strange), middle, number)
    elif not variable.gaps:
        number = graph.add("Where", gap, middle, number)
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
