"""What the table of parameters is made of, and how it is read.

A parameter is a field of a dataclass. Its type and default are those of the field, its
documentation is the entry of its name in the docstring of the class; its check and its options on
the command line are in the metadata of the field.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, TypeVar

DATA = "The data"
TREE = "The tree"
REQUIREMENTS = "What must hold"
RUN = "The run"

# What docstrings of estimators say in the source.
REFERENCE = "**parameters\n    Those of ``softsplit.settings.table``.\n"

Documented = TypeVar("Documented", bound=type)


@dataclass(frozen=True)
class CliOption:
    """How a parameter, or a part of it, is given on the command line.

    Attributes
    ----------
    flag, help : str
    kind : type or tuple of str
        ``list``: texts, one each time that the option is given; a tuple: one of these words;
        ``object``: a word or a number that passes the check of the parameter.
    panel : str
        Under which the help lists it.
    least, most : float, optional
    default
        Without one the option need not be given; the parameter then has its own default.
    """

    flag: str
    help: str
    kind: Any = str
    panel: str = TREE
    least: float | None = None
    most: float | None = None
    metavar: str | None = None
    short: str | None = None
    default: Any = None

    @property
    def name(self) -> str:
        """The option as a name of Python."""
        return self.flag.lstrip("-").replace("-", "_")


def parameter(
    default: Any,
    help: str = "",
    kind: Any = str,
    *more: CliOption,
    check: Callable[[str, Any], Any] | None = None,
    flag: str = "",
    given: Any = None,
    **option: Any,
) -> Any:
    """Return the field of a parameter, with an option of the command line if there is ``help``.

    ``check`` takes its name and a value, and returns what is computed with or raises a
    ``ParameterError``; a value that is the default, such as None or "auto", is not checked. The
    option is called as the parameter, if no ``flag`` is given; ``given`` is its default, and
    ``more`` are further options for parts of the parameter.
    """
    own = [CliOption(flag, help, kind, default=given, **option)] if help else []
    return field(default=default, metadata={"options": (*own, *more), "check": check})


def taken(table: type, name: str) -> Any:
    """Return the field of a parameter of another table: default, check and options."""
    item = next(item for item in fields(table) if item.name == name)
    return field(default=item.default, metadata=dict(item.metadata))


def parameters(*tables: type) -> list[Field[Any]]:
    """Return the parameters of some classes; of two with the same name the first one counts."""
    fields_by_name: dict[str, Field[Any]] = {}
    for table in tables:
        for item in fields(table):
            fields_by_name.setdefault(item.name, item)
    return list(fields_by_name.values())


def options(*tables: type) -> Iterator[tuple[Field[Any], CliOption]]:
    """Yield the options of the command line, each with its parameter."""
    for item in parameters(*tables):
        for option in item.metadata.get("options", ()):
            flag = option.flag or f"--{item.name.replace('_', '-')}"
            yield item, replace(option, flag=flag)


def checked(table: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of parameters of a table, checked, as they are computed with."""
    ready = {}
    for item in parameters(table):
        value, check = values[item.name], item.metadata.get("check")
        left = value is None or (isinstance(value, str) and value == "auto")
        usual = left and type(value) is type(item.default) and value == item.default
        ready[item.name] = value if check is None or usual else check(item.name, value)
    return ready


def documented(*tables: type, also: tuple[type, ...] = ()) -> Callable[[Documented], Documented]:
    """Decorator that puts the documentation of the parameters of ``tables`` into a docstring.

    It takes the place of the lines ``REFERENCE``; of two tables that describe a parameter the first
    one is heard, and those that a table has ``taken`` are described by the tables ``also``.
    """

    def describe(cls: Documented) -> Documented:
        entries: dict[str, str] = {}
        for table in (*tables, *also):
            entries = _entries(table.__doc__ or "") | entries
        order = [item.name for item in parameters(*tables)]
        text = "".join(dict.fromkeys(entries[name] for name in order if name in entries))
        doc = inspect.cleandoc(cls.__doc__ or "")  # empty under python -OO
        cls.__doc__ = doc.replace(REFERENCE, text)
        return cls

    return describe


def _entries(doc: str) -> dict[str, str]:
    """Return the entries of the section "Parameters" of a docstring, by the names they are for."""
    section = inspect.cleandoc(doc).partition("Parameters\n----------\n")[2] + "\n"
    entries = re.findall(r"^\S.*\n(?:    .*\n)*", section, re.MULTILINE)
    return {name: entry for entry in entries for name in entry.partition(" : ")[0].split(", ")}


def spellings(*tables: type) -> dict[str, str]:
    """Return the option that each parameter is given by on the command line."""
    flags: dict[str, str] = {}
    for item, option in options(*tables):
        flags.setdefault(item.name, option.flag)
    return flags
