"""A tree as C99 in one file, without other libraries than that of C."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from softsplit.exports.expressions import Column, Expression
from softsplit.exports.printing import (
    BLANKS,
    HEADER,
    CodePrinter,
    identifiers,
    model_in,
    remark,
    written,
)
from softsplit.exports.program import TreeProgram, program_of
from softsplit.support.messages import shown
from softsplit.support.output_files import PathName

PLAIN = re.compile(rb"[A-Za-z0-9 _.,:;+=()-]")

FIELD = "col_"
"""Names of fields begin with this, so that none is a word of C."""

HELPERS = {
    "text": """
static size_t ss_blank(const char *text) {
    for (size_t i = 0; i < sizeof ss_blanks / sizeof *ss_blanks; i++) {
        size_t size = strlen(ss_blanks[i]);
        if (strncmp(text, ss_blanks[i], size) == 0) return size;
    }
    return 0;
}

static int ss_level(const char *text, const char *const *levels, int count) {
    if (text == NULL) return -2;
    for (int i = 0; i < count; i++) if (strcmp(text, levels[i]) == 0) return i;
    size_t size;
    while (*text && (size = ss_blank(text)) > 0) text += size;
    if (!*text) return -2;
    const char *end = text;
    for (const char *at = text; *at; ) {
        size = ss_blank(at);
        at += size > 0 ? size : 1;
        if (size == 0) end = at;
    }
    size = (size_t)(end - text);
    for (int i = 0; i < count; i++)
        if (strlen(levels[i]) == size && strncmp(text, levels[i], size) == 0) return i;
    return -1;
}
""",
    "truth": """
static int ss_truth(double value) { return isnan(value) ? -2 : value != 0.0; }
""",
}
"""Functions that read texts and truth values."""

RANK = """
static double ss_rank(double x, const double *knots, const double *ranks, int count) {
    int low = 0, high = count - 1;
    if (x <= knots[0]) return ranks[0];
    if (x >= knots[high]) return ranks[high];
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (knots[middle] <= x) low = middle; else high = middle;
    }
    double slope = (ranks[high] - ranks[low]) / (knots[high] - knots[low]);
    return ranks[low] + (x - knots[low]) * slope;
}
"""


class CPrinter(CodePrinter):
    """Expressions of C; tables become static arrays."""

    words: ClassVar[Mapping[str, str]] = {"all": "&&", "any": "||"}

    listed = "{{{}}}"
    picked = "{table}[(int){at} + 2]"
    ranked = "ss_rank({at}, {knots}, {ranks}, {count})"
    helpers, interpolation = HELPERS, RANK

    def __init__(self, fields: dict[int, str]) -> None:
        super().__init__()
        self.fields = fields

    def constant(self, text: str, kind: str = "const double ") -> str:
        name = f"ss_t{len(self.constants)}"
        self.constants.append(f"static {kind}{name}[] = {text};")
        return name

    def quoted(self, text: str) -> str:
        return quoted(text)

    def read(self, column: Column) -> str:
        field = f"row->{self.fields[column.place]}"
        if column.kind == "text":
            texts = self.listed.format(", ".join(map(quoted, column.levels)))
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


def quoted(text: str) -> str:
    """A string of C in UTF-8; what is not plain is written as octal numbers."""
    if "\0" in text:
        raise ValueError(
            f"{shown(text)} holds a zero character, which ends a string of C; use another export."
        )
    content = text.encode("utf-8", "surrogatepass")
    parts = [chr(b) if PLAIN.match(bytes([b])) else f"\\{b:03o}" for b in content]
    return f'"{"".join(parts)}"'


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
    lines = [f"    double {name} = {printer(e)};" for name, e in program.definitions.items()]
    kinds = {column.kind for column in program.columns}
    types = {"text": "const char *", "number": "double ", "truth": "double ", "day": "double "}
    struct = [
        f"    {types[column.kind]}{name};  // {remark(column.name)}"
        + (", days since 1970-01-01" if column.kind == "day" else "")
        for column, name in zip(program.columns, names, strict=True)
    ]
    labels = ", ".join(quoted(str(label)) for label in program.classes)
    blanks = ", ".join(map(quoted, BLANKS))
    parts = [
        f"// {HEADER}\n#include <math.h>\n#include <string.h>\n\n",
        "typedef struct {\n", *(f"{line}\n" for line in struct or ["    double unused;"]),
        "} softsplit_row;\n\n",
        f"const char *const softsplit_classes[] = {{{labels}}};\n",
        f"enum {{ softsplit_n_classes = {len(program.classes)} }};\n",
        *(f"{line}\n" for line in printer.constants),
        *([f"static const char *const ss_blanks[] = {{{blanks}}};\n"] * ("text" in kinds)),
        *printer.functions(program.columns),
        "\nint softsplit_predict_proba(const softsplit_row *row, double *proba) {\n",
        *_body(lines, program.needed_for(program.answers)),
        *(f"    proba[{i}] = {printer(p)};\n" for i, p in enumerate(program.probabilities)),
        f"    (void)row;\n    return (int){printer.inner(program.predicted)};\n}}\n",
        "\nint softsplit_predict(const softsplit_row *row) {\n",
        "    double proba[softsplit_n_classes];\n",
        "    return softsplit_predict_proba(row, proba);\n}\n",
        *_reasons(program, lines, printer),
    ]  # fmt: skip
    return written("".join(parts), path)


def _body(lines: list[str], wanted: Collection[str]) -> list[str]:
    return [f"{line}\n" for line in lines if line.split()[1] in wanted]


def _reasons(program: TreeProgram, lines: list[str], printer: CPrinter) -> list[str]:
    reasons = program.reasons
    if not reasons:
        return []
    called = [f"question {question}: {variable}" for question, variable, _, _ in reasons]
    base = {reason.question: reason.base for reason in reasons}
    return [
        f"\nenum {{ softsplit_n_reasons = {len(reasons)} }};\n",
        f"const char *const softsplit_reason_names[] = {{{', '.join(map(quoted, called))}}};\n",
        *(f"// a mean row, question {q}: {value!r}\n" for q, value in base.items()),
        "\nvoid softsplit_reasons(const softsplit_row *row, double *values) {\n",
        *_body(lines, program.needed_for(reason.value for reason in reasons)),
        *(f"    values[{i}] = {printer(reason.value)};\n" for i, reason in enumerate(reasons)),
        "}\n",
    ]
