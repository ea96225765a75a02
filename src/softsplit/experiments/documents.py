"""Tables as files: CSV for machines, Markdown for readers, LaTeX for papers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd

from softsplit.support.messages import visible
from softsplit.support.output_files import write_file

LATEX_ESCAPES = str.maketrans(
    {c: "\\" + c for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
)


def table_files(folder: Path, name: str) -> list[Path]:
    """Where a table is written."""
    return [folder / f"{name}.{ending}" for ending in ("csv", "md", "tex")]


def write_table(
    table: pd.DataFrame, folder: Path, name: str, title: str, notes: str = ""
) -> list[Path]:
    """``name``.csv with all digits, and .md and .tex with as many as can be read.

    ``notes`` stand below the table in the Markdown.
    """
    title = visible(title)
    paths = table_files(folder, name)
    texts = (csv(table), f"# {title}\n\n{markdown(table)}{notes}", latex(table, title))
    for path, text in zip(paths, texts, strict=True):
        write_file(path, text.encode("utf-8"))
    return paths


def csv(table: pd.DataFrame) -> str:
    """All digits, for machines."""
    text: str = table.to_csv(index=False, lineterminator="\n")
    return text


def markdown(table: pd.DataFrame) -> str:
    """A pipe table."""
    head = [visible(column).replace("_", " ") for column in table.columns]
    rule = ["---" if _is_text(table[c]) else "---:" for c in table.columns]
    lines = [head, rule, *_texts(table)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def latex(table: pd.DataFrame, title: str) -> str:
    """A tabular for the booktabs package."""
    columns = "".join("l" if _is_text(table[c]) else "r" for c in table.columns)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{title.translate(LATEX_ESCAPES)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _latex_line([visible(column).replace("_", " ") for column in table.columns]),
        r"\midrule",
        *(_latex_line(line) for line in _texts(table)),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_line(cells: list[str]) -> str:
    return " & ".join(cell.translate(LATEX_ESCAPES) for cell in cells) + r" \\"


def _texts(table: pd.DataFrame) -> list[list[str]]:
    names = [str(column) for column in table.columns]
    return [
        [_text(name, value) for name, value in zip(names, row, strict=True)]
        for row in table.itertuples(index=False, name=None)
    ]


def _text(name: str, value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return visible(value)
    if "accuracy" in name or name == "gap":
        return f"{100 * value:.1f}"
    if "seconds" in name:
        return f"{value:.3g}"
    if "sparsity" in name or name in ("features_used", "nonzeros"):
        return f"{value:.1f}"
    return f"{value:g}" if "strength" in name or "log2" in name else f"{value:.4g}"


def _is_text(column: pd.Series) -> bool:
    return not pd.api.types.is_numeric_dtype(column.dtype)
