"""A tree as JavaScript, for browsers and Node, without other packages."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, ClassVar

from softsplit.exports.expressions import Column, Expression
from softsplit.exports.printing import HEADER, CodePrinter, model_in, remark, written
from softsplit.exports.program import program_of
from softsplit.support.arrays import LARGEST_WHOLE
from softsplit.support.output_files import PathName

READERS = {
    "number": r"""
  const number = (value) => { // NaN if it is missing
    if (absent(value)) return NaN;
    const plain = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
    if (typeof value === "string" && !plain.test(value.trim())) {
      throw new TypeError(`${value} stands where a number is needed.`);
    }
    if (!Number.isFinite(Number(value))) throw new TypeError("a number is infinite.");
    return Number(value);
  };
""",
    "truth": r"""
  const truth = (value) => { // 1, 0, or -2 if it is missing
    if (absent(value)) return -2;
    const said = typeof value === "string"
      ? { true: 1, false: 0 }[value.trim().toLowerCase()] : Number(value);
    if (said !== 0 && said !== 1) {
      throw new TypeError(`${value} stands where true or false is needed.`);
    }
    return said;
  };
""",
    "day": r"""
  const TIME = /(\d\d):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?(Z|[+-]\d\d:?\d\d)?/.source;
  const ISO = new RegExp(`^(\\d{4})-(\\d\\d)-(\\d\\d)(?:[ T]${TIME})?$`);
  const day = (value, form, order) => { // days since 1970-01-01, NaN if it is missing
    if (absent(value)) return NaN;
    if (value instanceof Date) return value.getTime() / 86400000;
    const text = String(value).trim();
    const iso = ISO.exec(text);
    const own = iso || (form && form.exec(text));
    if (!own) throw new TypeError(`${value} stands where a date is needed.`);
    const [y, m, d] = iso ? [1, 2, 3] : order;
    const whole = Date.UTC(Number(own[y]), Number(own[m]) - 1, Number(own[d])) / 86400000;
    const seconds = 3600 * Number(own[4] || 0) + 60 * Number(own[5] || 0) + Number(own[6] || 0);
    const zone = iso && iso[7] && iso[7] !== "Z" ? iso[7].replace(":", "") : "+0000";
    const shift = 3600 * Number(zone.slice(1, 3)) + 60 * Number(zone.slice(3));
    return whole + (seconds - (zone[0] === "-" ? -shift : shift)) / 86400;
  };
""",
    "text": r"""
  const level = (value, levels) => { // its position, -1 if it is none, -2 if it is missing
    if (absent(value)) return -2;
    const text = typeof value === "boolean" ? (value ? "True" : "False") : String(value);
    const bare = text.replace(/^(?:(?!\ufeff)[\s\x1c-\x1f\x85])+/, "");
    const ends = bare.replace(/(?:(?!\ufeff)[\s\x1c-\x1f\x85])+$/, "");
    const known = levels.has(text) ? text : ends;
    return levels.has(known) ? levels.get(known) : -1;
  };
""",
}

ABSENT = r"""
  const absent = (value) => value === null || value === undefined || Number.isNaN(value)
    || (typeof value === "string" && /^(?:(?!\ufeff)[\s\x1c-\x1f\x85])*$/.test(value));
"""

RANK = r"""
  const rank = (x, knots, ranks) => { // linear interpolation, constant beyond the ends
    const last = knots.length - 1;
    if (x <= knots[0]) return ranks[0];
    if (x >= knots[last]) return ranks[last];
    let [low, high] = [0, last];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (knots[middle] <= x) low = middle; else high = middle;
    }
    const slope = (ranks[high] - ranks[low]) / (knots[high] - knots[low]);
    return ranks[low] + (x - knots[low]) * slope;
  };
"""


class JavaScriptPrinter(CodePrinter):
    """Expressions of JavaScript; tables become constants."""

    signs: ClassVar[Mapping[str, str]] = {"greater": ">", "at least": ">=", "equal": "==="}
    words: ClassVar[Mapping[str, str]] = {"all": "&&", "any": "||"}

    levels, level = "new Map([{}])", "[{}, {}]"
    helpers: ClassVar[Mapping[str, str]] = {"absent": ABSENT, **READERS}
    interpolation = RANK

    def quoted(self, text: str) -> str:
        """A string that may also stand in an HTML page."""
        return quoted(text)

    def form(self, column: Column) -> str:
        return ", ".join(["", *_date_pattern(column.form)]) if column.form else ""

    def missing(self, cell: Expression) -> str:
        return f"Number.isNaN({self(cell)})"

    def call(self, function: str, args: list[str]) -> str:
        return super().call(f"Math.{function}", args)


def quoted(text: str) -> str:
    """A string of JavaScript that may also stand in an HTML page."""
    return json.dumps(text).replace("<", "\\u003c")


def _date_pattern(form: str) -> tuple[str, str]:
    """A pattern for dates in a ``strptime`` format, and where year, month and day stand in it."""
    parts = {
        "%d": r"(\d{1,2})", "%m": r"(\d{1,2})", "%Y": r"(\d{4})",
        "%H": r"(\d{1,2})", "%M": r"(\d{1,2})", "%S": r"(\d{1,2})",
        ".": r"\.", "/": r"\/", " ": r"\s+",
    }  # fmt: skip
    places = sorted("Ymd", key=form.index)
    for part, pattern in parts.items():
        form = form.replace(part, pattern) if part.startswith("%") else form
    # Separators are told apart from the patterns that were put in before.
    for mark in ("/", "."):
        form = form.replace(f"){mark}(", f"){parts[mark]}(")
    form = form.replace(") (", r")\s+(")
    order = [1 + places.index(part) for part in "Ymd"]
    return f"/^{form}$/", json.dumps(order)


def _label(label: Any) -> str:
    if isinstance(label, str):
        return quoted(label)
    if isinstance(label, int) and not isinstance(label, bool) and abs(label) > LARGEST_WHOLE:
        return f"{label}n"  # BigInt: a number of JavaScript is a double
    if isinstance(label, float) and not math.isfinite(label):
        return "NaN" if math.isnan(label) else f"{'-' if label < 0 else ''}Infinity"
    return json.dumps(label)


def export_javascript(tree: Any, path: PathName | None = None, *, reasons: bool = False) -> str:
    """The tree as the text of a script, written to ``path`` if one is given.

    It defines ``softsplit`` with ``classes``, ``predictProba(row)`` and ``predict(row)``, in a page
    as a global name and in Node by ``require``. A row is an object by names of columns, or an array
    of all columns of the table. Dates are texts or ``Date``.

    Parameters
    ----------
    tree : fitted SoftTreeClassifier, or a search that holds one as ``best_estimator_``
    path : path, optional
    reasons : bool, default=False
        Add ``reasons(row)``: what each variable adds to the log-odds of each question, as arrays
        [question, variable, log-odds], and ``base``, the log-odds of a mean row by question.

    Returns
    -------
    str
    """
    program = program_of(model_in(tree), reasons=reasons)
    printer = JavaScriptPrinter()
    lines = [f"    const {name} = {printer(e)};" for name, e in program.definitions.items()]
    answers = ", ".join(map(printer, program.probabilities))
    triples = [f"[{q}, {quoted(v)}, {printer(value)}]" for q, v, value, _ in program.reasons]
    listed = ", ".join(triples)
    used = ", ".join(remark(column.name) for column in program.columns)
    base = json.dumps({str(reason.question): reason.base for reason in program.reasons})
    parts = [
        f"// {HEADER}\n",
        f"// Columns in use: {used}\n" if used else "",
        "const softsplit = (() => {\n",
        f"  const classes = [{', '.join(map(_label, program.classes))}];\n",
        *(f"  const T{i} = {text};\n" for i, text in enumerate(printer.constants)),
        *printer.functions(program.columns),
        CELL,
        "\n  const answer = (row) => {\n",
        *(f"{line}\n" for line in lines),
        f"    return {{ k: {printer(program.predicted)}, p: [{answers}], q: [{listed}] }};\n",
        "  };\n\n",
        "  return {\n    classes,\n    predictProba: (row) => answer(row).p,\n",
        "    predict: (row) => classes[answer(row).k],\n",
        f"    reasons: (row) => answer(row).q,\n    base: {base},\n" if triples else "",
        "  };\n})();\n",
        'if (typeof module !== "undefined") module.exports = softsplit;\n',
    ]
    return written("".join(parts), path)


CELL = """
  const cell = (row, name, place) => {
    if (Array.isArray(row)) return row[place];
    if (Object.prototype.hasOwnProperty.call(row, name)) return row[name];
    throw new TypeError(`the row has no column '${name}'; give null if its value is not known.`);
  };
"""
