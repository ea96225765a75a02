"""A tree as C99 in one file, without other libraries than that of C."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from softsplit.exports.expressions import Column, Expression
from softsplit.exports.printing import BLANKS, CodePrinter, identifiers, model_in
from softsplit.exports.program import program_of
from softsplit.support.messages import shown
from softsplit.support.output_files import PathName

PLAIN = re.compile(rb"[A-Za-z0-9 _.,:;+=()-]")

FIELD = "col_"
"""Names of fields begin with this, so that none is a word of C."""


class CPrinter(CodePrinter):
    """Expressions of C; tables become static arrays."""

    words: ClassVar[Mapping[str, str]] = {"all": "&&", "any": "||"}

    listed = "{{{}}}"
    picked = "{table}[(int){at} + 2]"
    ranked = "ss_rank({at}, {knots}, {ranks}, {count})"
    template, reason = "c.jinja", "{2}"

    def __init__(self, fields: dict[int, str]) -> None:
        super().__init__()
        self.fields = fields

    def constant(self, text: str, kind: str = "const double ") -> str:
        name = f"ss_t{len(self.constants)}"
        self.constants.append(f"static {kind}{name}[] = {text};")
        return name

    def quoted(self, text: str) -> str:
        """A string of C in UTF-8; what is not plain is written as octal numbers."""
        if "\0" in text:
            raise ValueError(
                f"{shown(text)} holds a zero character, which ends a string of C; use another "
                "export."
            )
        content = text.encode("utf-8", "surrogatepass")
        parts = [chr(b) if PLAIN.match(bytes([b])) else f"\\{b:03o}" for b in content]
        return f'"{"".join(parts)}"'

    def label(self, label: Any) -> str:
        return self.quoted(str(label))

    def read(self, column: Column) -> str:
        field = f"row->{self.fields[column.place]}"
        if column.kind == "text":
            texts = self.listed.format(", ".join(map(self.quoted, column.levels)))
            levels = self.constant(texts, "const char *const ")
            return f"ss_level({field}, {levels}, {len(column.levels)})"
        return f"ss_truth({field})" if column.kind == "truth" else field

    def missing(self, cell: Expression) -> str:
        return f"isnan({self(cell)})"

    def call(self, function: str, args: list[str]) -> str:
        names = {"exp": "exp", "abs": "fabs", "max": "fmax", "min": "fmin", "floor": "floor"}
        text = args[-1]
        if len(args) == 1:
            return f"{names[function]}({text})"
        for arg in reversed(args[:-1]):
            text = f"{names[function]}({arg}, {text})"
        return text


def export_c(tree: Any, path: PathName | None = None, *, reasons: bool = False) -> str:
    """The tree as the text of a C file, written to ``path`` if one is given.

    ``softsplit_row`` is a struct with a field for each column in use: ``double`` for numbers, truth
    values (1 and 0) and days since 1970-01-01, NAN for a missing value; ``const char *`` in UTF-8
    for texts, NULL or blank for a missing one. ``softsplit_predict_proba(&row, proba)`` fills in
    the probabilities and returns the position of the class in ``softsplit_classes``, a list of
    texts.

    Parameters
    ----------
    tree : fitted SoftTreeClassifier, or a search that holds one as ``best_estimator_``
    path : path, optional
    reasons : bool, default=False
        Add ``softsplit_reasons(&row, values)``, which fills in what each variable adds to the
        log-odds of each question, in the order of ``softsplit_reason_names``.

    Returns
    -------
    str
    """
    program = program_of(model_in(tree), reasons=reasons)
    names = identifiers([column.name for column in program.columns], FIELD)
    fields = {column.place: name for column, name in zip(program.columns, names, strict=True)}
    printer = CPrinter(fields)
    return printer.write(
        program,
        path,
        fields=fields,
        blanks=list(map(printer.quoted, BLANKS)),
        answering=program.needed_for(program.answers),
        reasoning=program.needed_for(reason.value for reason in program.reasons),
        reason_names=[
            printer.quoted(f"question {r.question}: {r.variable}") for r in program.reasons
        ],
    )
