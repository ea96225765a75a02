"""Readers of tables: CSV in its common dialects, Parquet, Feather, Excel, standard input.

Fields of a text file stay text here, so that a level "010" is the same in every file;
``learning.py`` decides which columns are numeric. ``require_columns`` and the functions after it
check the columns of a table.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softsplit.support.messages import counted, cut, nearest, shown, visible
from softsplit.variables.columns import listed_columns, missing_columns
from softsplit.variables.contents import number_of, read

STDIN = "-"
SEPARATORS = (",", ";", "\t", "|")
ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".feather", ".arrow", ".xlsx")
BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
DECIMAL_COMMA = re.compile(r"[+-]?\d*(,\d+)?([eE][+-]?\d+)?")


# The separator and the column names are searched in this many leading characters.
HEADER_BYTES = 1 << 20

# Largest ratio of the unpacked to the packed size of a compressed file.
MOST_EXPANSION = 200

# Bytes that are unpacked whatever the ratio.
ALWAYS_UNPACKED = 1 << 26

# Longest column name; a longer one is due to a quotation mark that was never closed.
NAME_CHARACTERS = 500


@dataclass(frozen=True)
class Table:
    """A table as read from a file.

    Attributes
    ----------
    name : str
        The name of the file without its ending.
    frame : pandas frame
        Columns of text files hold text, those of other files keep their type.
    decimal_comma : bool
        Whether "1,5" may be a number: true for text files whose separator is not the comma.
    notes : tuple of str
        Notes to the user, such as a column that was dropped.
    """

    name: str
    frame: pd.DataFrame
    decimal_comma: bool = False
    notes: tuple[str, ...] = ()


def read_table(source: str | Path, *, encoding: str | None = None) -> Table:
    """Read the table in a file, or from standard input if ``source`` is "-".

    Parameters
    ----------
    source : path or "-"
        A .csv, .tsv, .txt (each also .gz), .parquet, .pq, .feather, .arrow or .xlsx file (first
        sheet). In text files the first line names the columns; the separator is whichever of
        comma, semicolon, tab and bar splits that line into most fields. Empty fields, "?", "NA"
        and the like are missing values.
    encoding : str, optional
        Default: the encoding of the byte order mark, or UTF-8.
    """
    if str(source) == STDIN:
        return _parsed("standard input", sys.stdin.buffer.read(), encoding)
    path = Path(source)
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; give a file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}.")
    ending = path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:]
    kind = ending[0].lower() if ending else ""
    if kind not in ENDINGS:
        raise ValueError(
            f"file {path.name!r} is of no known kind; give a .csv, .tsv, .csv.gz, .parquet, "
            ".feather or .xlsx file."
        )
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = _unpacked(path.name, content)
    return _parsed(path.name, content, encoding)


def _unpacked(name: str, content: bytes) -> bytes:
    most = max(ALWAYS_UNPACKED, MOST_EXPANSION * len(content))
    parts, size = [], 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            while size <= most and (part := file.read(1 << 20)):
                parts.append(part)
                size += len(part)
    except (OSError, EOFError, zlib.error):
        raise ValueError(f"file {name!r} is not compressed as its name says.") from None
    if size > most:
        raise ValueError(
            f"file {name!r} unpacks to more than {MOST_EXPANSION} times its size; if you trust "
            "it, unpack it yourself."
        )
    return b"".join(parts)


def _parsed(name: str, content: bytes, encoding: str | None) -> Table:
    stem = name.split(".")[0] or name
    name = visible(name)
    for magic, reader in READERS.items():
        if content.startswith(magic):
            frame = reader(name, content)
            named = frame.set_axis(_checked_names(name, frame.columns), axis=1)
            return Table(stem, named.reset_index(drop=True))
    text = _decoded(name, content, encoding)
    if not text.strip():
        raise ValueError(f"{name} is empty; its first line must name the columns.")
    # The separator is the one that splits the first line into most fields.
    head = text[:HEADER_BYTES]
    separator = max(SEPARATORS, key=lambda mark: len(_header(head, mark)))
    header = _checked_header(name, text, separator)
    frame, notes = _csv(name, text, separator), []
    short = _short_rows(text, separator, frame)
    if not header[0]:
        _refuse_nameless(name, frame.iloc[:, 0])
        frame = frame.iloc[:, 1:]
        notes.append("the first column has no name and counts the rows; it is left out.")
    if short:
        have = f"{counted(short, 'row')} {'has' if short == 1 else 'have'}"
        notes.append(
            f"{have} fewer fields than the first line; the last fields count as missing values."
        )
    return Table(stem, frame, separator != ",", tuple(notes))


def _of_arrow(kind: str, name: str, content: bytes) -> pd.DataFrame:
    try:
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            f"reading {kind} needs pyarrow; install it with: pip install 'softsplit[parquet]'."
        ) from None
    read = pyarrow.parquet.read_table if kind == "Parquet" else pyarrow.feather.read_table
    try:
        table = read(io.BytesIO(content))
        table.validate(full=True)  # invalid UTF-8 would otherwise fail much later
        return table.to_pandas()
    except Exception as error:  # pyarrow has its own hierarchy of errors
        raise ValueError(f"{name} cannot be read as {kind}: {_first_line(error)}.") from None


def _excel(name: str, content: bytes) -> pd.DataFrame:
    """Read the first sheet; raise ``ValueError`` if the archive expands beyond the limits."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as parts:
            size = sum(part.file_size for part in parts.infolist())
    except zipfile.BadZipFile:
        raise ValueError(f"{name} cannot be read as Excel: it is damaged.") from None
    if size > max(ALWAYS_UNPACKED, MOST_EXPANSION * len(content)):
        raise ValueError(f"{name} unpacks to more than {MOST_EXPANSION} times its size.")
    try:
        import openpyxl  # noqa: F401 - pandas reads with it
    except ImportError:
        raise ImportError(
            "reading Excel needs openpyxl; install it with: pip install 'softsplit[excel]'."
        ) from None
    try:
        frame = pd.read_excel(io.BytesIO(content), na_values=["?"])
    except Exception as error:  # openpyxl raises what its parsers raise
        raise ValueError(f"{name} cannot be read as Excel: {_first_line(error)}.") from None
    if frame.shape[1] == 0:
        raise ValueError(f"{name} is empty; its first line must name the columns.")
    return frame


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__


# Readers by the bytes that files of a kind begin with.
READERS: dict[bytes, Callable[[str, bytes], pd.DataFrame]] = {
    b"PAR1": partial(_of_arrow, "Parquet"),
    b"ARROW1": partial(_of_arrow, "Feather"),
    b"PK\x03\x04": _excel,
}


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first duplicate name, or None; linear time, for files of very many columns."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _checked_names(name: str, columns: Iterable[Any]) -> list[str]:
    """Return the names of columns, none of them very long and, where there is one, none twice."""
    names = list(map(str, columns))
    for place, column in enumerate(names, start=1):
        if len(column) > NAME_CHARACTERS:
            raise ValueError(
                f"the name of column {place} of {name} has {len(column)} characters, more than "
                f"{NAME_CHARACTERS}; the first line must name all columns."
            )
    repeated = first_repeated(filter(None, names))
    if repeated is not None:
        raise ValueError(f"{name} has several columns named {shown(repeated)}; rename all but one.")
    return names


def _decoded(name: str, content: bytes, encoding: str | None) -> str:
    if encoding is None:
        marks = (e for mark, e in BYTE_ORDER_MARKS.items() if content.startswith(mark))
        encoding = next(marks, "utf-8")
    try:
        text = content.decode(encoding)
    except LookupError:
        raise ValueError(f"encoding {shown(encoding)} is unknown; try utf-8 or cp1252.") from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} is not text in {encoding} (byte {error.start}); save it as UTF-8, or name its "
            "encoding, such as cp1252 for files of older Windows programs."
        ) from None
    if "\0" in text:
        raise ValueError(f"{name} holds zero bytes: it is no text file.")
    return text.removeprefix("\ufeff")


def _header(text: str, separator: str) -> list[str]:
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    try:
        return next((row for row in reader if row), [])
    except csv.Error:
        return []


def _checked_header(name: str, text: str, separator: str) -> list[str]:
    """Return the fields of the first line, of which only the first may be empty."""
    header = _checked_names(name, map(str.strip, _header(text[:HEADER_BYTES], separator)))
    if "" in header[1:]:
        raise ValueError(
            f"column {header.index('', 1) + 1} of {name} has no name; the first line must name all "
            "columns."
        )
    return header


def _csv(name: str, text: str, separator: str) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame = pd.read_csv(
                io.StringIO(text), sep=separator, dtype=str, na_values=["?"],
                skipinitialspace=True, index_col=False,
            )  # fmt: skip
        except pd.errors.ParserWarning:
            raise ValueError(
                f"rows of {name} have more fields than its first line; check that line, and quote "
                "fields that hold the separator."
            ) from None
        except pd.errors.ParserError as error:
            place = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
            what = str(error).replace("Error tokenizing data. C error: ", "").rstrip(". \n")
            hint = "quote fields that hold the separator"
            if place:
                what = "line {1} has {2} fields where there are {0} columns".format(*place.groups())
            elif opened := re.search(r"EOF inside string starting at row (\d+)", str(error)):
                # pandas counts from zero and skips empty lines, so the line is approximate.
                what = f"a quotation mark near line {int(opened[1]) + 1} is never closed"
                hint = "close it, or double it inside a quoted field"
            raise ValueError(f"{name} cannot be read: {what}; {hint}.") from None
    frame.columns = [str(column).strip() for column in frame.columns]
    stripped = frame.astype(str).apply(lambda column: column.str.strip())
    return stripped.astype(object).where(frame.notna(), frame)


def _short_rows(text: str, separator: str, frame: pd.DataFrame) -> int:
    """Return how many rows have fewer fields than there are columns; blank lines are no rows.

    Spreadsheets write such rows where the last cells are empty, and pandas fills them up. Only a
    file with missing values in its last column has them.
    """
    n_fields = frame.shape[1]
    if n_fields < 2 or not frame.iloc[:, -1].isna().any():
        return 0
    if '"' not in text:
        fewest, blank = n_fields - 1, separator + " \t\n"
        lines = io.StringIO(text, newline=None)
        return sum(line.count(separator) < fewest and line.strip(blank) != "" for line in lines)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    short = 0
    try:
        for row in rows:
            short += len(row) < n_fields and any(field.strip() for field in row)
    except csv.Error:  # a field longer than this reader takes, and pandas took
        pass
    return short


def _refuse_nameless(name: str, column: pd.Series) -> None:
    """Refuse a first column without a name, unless it counts the rows: an index of pandas does."""
    numbers = pd.to_numeric(column, errors="coerce")
    if not len(column) or numbers.iloc[0] not in (0, 1) or (numbers.diff().iloc[1:] != 1).any():
        raise ValueError(f"column 1 of {name} has no name; the first line must name all columns.")


def with_decimal_points(table: Table) -> pd.DataFrame:
    """Return the frame with decimal points in place of decimal commas in numeric columns."""
    if not table.decimal_comma:
        return table.frame
    frame = table.frame.copy()
    for name in frame.columns:
        known = frame[name].dropna()
        if known.str.contains(",").any() and known.str.fullmatch(DECIMAL_COMMA).all():
            frame[name] = frame[name].str.replace(",", ".", regex=False)
    return frame


def typed(table: Table) -> pd.DataFrame:
    """Return the frame with numeric columns as floats."""
    frame = with_decimal_points(table).copy()
    for name in frame.columns:
        truths = pd.api.types.is_bool_dtype(frame[name].dtype)
        numbers = None if truths else read(frame[name], number_of)
        if numbers is not None:
            frame[name] = numbers
    return frame


def require_columns(frame: pd.DataFrame, wanted: Iterable[str], what: str = "column") -> None:
    """Raise ``ValueError`` if a ``wanted`` column is absent; suggest a similar name."""
    names = [str(column) for column in frame.columns]
    absent = [name for name in wanted if name not in names]
    if not absent:
        return
    if what == "target":
        close = nearest(absent[0], names)
        hint = f"did you mean {close}?" if close else f"there are: {_present(names)}."
        raise ValueError(f"target {shown(absent[0], 24)} is not a column of the table; {hint}")
    raise ValueError(missing_columns(absent, names, f"there are: {_present(names)}."))


def _present(names: Sequence[str]) -> str:
    return listed_columns([cut(visible(name), 20) for name in names])


def refuse_fractions(target: str, numbers: Any) -> None:
    """Raise ``ValueError`` for a target with fractions: a regression target, not classes."""
    if np.any(numbers != np.floor(numbers)):
        raise ValueError(
            f"target {shown(target)} holds decimal numbers; a classifier needs classes, and "
            "softsplit trains classifiers only."
        )
