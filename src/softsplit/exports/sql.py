"""A tree as one SQL statement.

Each level of the program is a common table expression, so that no expression is computed twice.
Where a database would put one into the other again, they are marked as MATERIALIZED.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from softsplit.exports.dialects import DIALECTS, Dialect, Postgres
from softsplit.exports.expressions import Expression, names_in
from softsplit.exports.printing import identifiers, model_in, remark, written
from softsplit.exports.program import SATURATION, TreeProgram, program_of
from softsplit.fitted.model import TreeModel
from softsplit.reading.outline import outline
from softsplit.reading.points_text import pointed_lines
from softsplit.support.lines import WIDTH
from softsplit.support.messages import unfit
from softsplit.support.output_files import PathName


def export_sql(
    tree: Any,
    table: str | Sequence[str],
    path: PathName | None = None,
    *,
    dialect: str = "postgres",
    keep: str | Sequence[str] | None = None,
    reasons: bool = False,
) -> str:
    """The tree as a SELECT statement over a table, written to ``path`` if one is given.

    The answer has the columns of ``keep``, ``predicted`` (the class, or the number), a column
    ``p_...`` for the probability of each class and, where asked for, ``q1_...`` for reasons. NULL
    and blank texts are missing values. Dates are of a type of the database or texts, truth values
    of any type.

    Parameters
    ----------
    tree : fitted SoftTreeClassifier, or a search that holds one as ``best_estimator_``
    table : str or sequence of str
        Its name, or its parts such as ("schema", "table"). Names are always quoted.
    path : path, optional
    dialect : {"postgres", "sqlite", "duckdb", "mssql", "bigquery"}, default="postgres"
    keep : str or sequence of str, optional
        Columns of the table to hand through, such as a key. Default: those that the tree uses.
    reasons : bool, default=False
        What each variable adds to the log-odds of each question.

    Returns
    -------
    str
    """
    if dialect not in DIALECTS:
        raise unfit("dialect", dialect, f"must be one of {', '.join(DIALECTS)}")
    model = model_in(tree)
    printer = DIALECTS[dialect]()
    if isinstance(printer, Postgres):
        printer.saturation = SATURATION / (model.topology.depth + 1)
    program = program_of(model, reasons=reasons, saturation=printer.saturation)
    if keep is None:
        keep = [column.name for column in program.columns]
    kept = [keep] if isinstance(keep, str) else list(keep)
    parts = [table] if isinstance(table, str) else list(table)
    return written(_comment(model, program) + _statement(program, printer, parts, kept), path)


def _comment(model: TreeModel, program: TreeProgram) -> str:
    """What wrote the statement, and the questions of a tree in points."""
    lines = pointed_lines(model, outline(model)) or []
    remarks = (remark(line, WIDTH)[1:-1] for line in lines)
    return "".join(f"-- {line}\n" for line in [program.header, *remarks])


def _statement(program: TreeProgram, sql: Dialect, table: list[str], kept: list[str]) -> str:
    # 1. Names of the steps, none of which hides the table.
    source = ".".join(map(sql.identifier, table))
    step = "softsplit"
    while any(part.casefold().startswith(step) for part in table):
        step += "_step"
    # 2. What each level must still hand on, from the last one back to the first.
    outputs = _outputs(program, kept)
    needed = {name for _, expression in outputs for name in names_in(expression)}
    levels = program.levels() or [{}]
    wanted = [needed]
    for level in reversed(levels[1:]):
        wanted.insert(0, wanted[0] | {n for e in level.values() for n in names_in(e)})
    # 3. A common table expression for each level: what is handed on, then what is computed.
    steps, have = [], set[str]()
    for number, (level, after) in enumerate(zip(levels, wanted, strict=True)):
        keys = [sql.name(f"k{i}") for i in range(len(kept))]
        if number == 0:
            first = zip(map(sql.identifier, kept), keys, strict=True)
            handed = [f"t.{name} AS {key}" for name, key in first]
        else:
            handed = [*keys, *map(sql.name, sorted(have & after))]
        values = [
            f"{sql.as_double(sql(e))} AS {sql.name(n)}" for n, e in level.items() if n in after
        ]
        have = (have | set(level)) & after
        # A tree without features needs a row for each one of the table, and nothing of it.
        lines = ",\n    ".join([*handed, *values] or ["1 AS ss_row"])
        before = f"{source} AS t" if not number else f"{step}_{number}"
        steps.append(
            f"{step}_{number + 1} AS {sql.materialized}(\n  SELECT\n    {lines}\n  FROM {before}\n)"
        )
    # 4. The answer.
    chosen = ",\n  ".join(_final(program, sql, kept, outputs))
    return f"WITH {', '.join(steps)}\nSELECT\n  {chosen}\nFROM {step}_{len(steps)}\n"


def _outputs(program: TreeProgram, kept: list[str]) -> list[tuple[str, Expression]]:
    """Names of the columns of the answer beside the kept ones, and what they hold."""
    predicted = identifiers(["predicted"], taken=kept)
    proba = identifiers(program.classes, "p_", taken=[*kept, *predicted])
    reasons = [identifiers([r.variable], f"q{r.question}_")[0] for r in program.reasons]
    reasons = identifiers(reasons, taken=[*kept, *predicted, *proba])
    return [
        (predicted[0], program.predicted),
        *zip(proba, program.probabilities, strict=True),
        *zip(reasons, (reason.value for reason in program.reasons), strict=True),
    ]


def _final(
    program: TreeProgram, sql: Dialect, kept: list[str], outputs: list[tuple[str, Expression]]
) -> list[str]:
    lines = [f"{sql.name(f'k{i}')} AS {sql.identifier(name)}" for i, name in enumerate(kept)]
    (name, at), *others = outputs
    if not program.classes:
        return [*lines, *(f"{sql.as_double(sql(e))} AS {sql.identifier(n)}" for n, e in outputs)]
    cases = [f"WHEN {k} THEN {sql.constant(label)}" for k, label in enumerate(program.classes)]
    lines.append(f"CASE {sql(at)} {' '.join(cases)} END AS {sql.identifier(name)}")
    return lines + [f"{sql.as_double(sql(e))} AS {sql.identifier(n)}" for n, e in others]
