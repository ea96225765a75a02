"""An experiment as a file: what is crossed with what, and under which protocol.

Specs are TOML. The ones of the paper's tables and figures are shipped with the package and found
by name; any other is found by its path. A key that does not exist is refused, with the nearest one
that does.

``MODELS`` are the regularised models of the paper by name. ``load_attribute`` loads parts of the
reader's own, which a spec names ``module:attribute``.
"""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from softsplit.formulations.settings import make_penalties
from softsplit.problem.penalties import BY_NAME, PenaltyPair
from softsplit.support.messages import shown

Scope = Literal["local", "global", "both"]


def load_attribute(place: str) -> Any:
    """What ``module:attribute`` names, or one sentence that says what is missing."""
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{place!r} cannot be loaded: {error}.") from None


try:
    from pydantic import (
        AfterValidator,
        BaseModel,
        ConfigDict,
        Field,
        ValidationError,
        model_validator,
    )
except ImportError as error:
    raise ImportError(
        "experiments need pydantic; install it with: pip install 'softsplit[experiments]'."
    ) from error


MOST_BYTES = 65_536
"""Larger files are refused before they are parsed: the shipped specs take a hundredth of it."""

MOST_DOTS = 400
"""Dots in one line: the memory of the parser grows with the square of the parts of a key."""

MOST_CELLS = 100_000_000
"""Trainings of one spec; the whole protocol of the paper is a thousandth of that."""

PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._ -]{0,99}")


def _file_name(name: str) -> str:
    """Files are called after a spec: its name must not lead to another folder."""
    if not PLAIN_NAME.fullmatch(name):
        raise ValueError(f"{shown(name)} cannot name a file; use letters, digits, '_', '-' and '.'")
    return name


FileName = Annotated[str, AfterValidator(_file_name)]


def _penalty_name(name: str) -> str:
    if name not in BY_NAME:
        raise ValueError(f"{shown(name)} is no penalty; choose one of {', '.join(BY_NAME)}")
    return name


PenaltyName = Annotated[str, AfterValidator(_penalty_name)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _refuse_unknown(what: str, name: str, known: list[str]) -> None:
    if name in known:
        return
    close = get_close_matches(str(name)[:100], known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}."
    raise ValueError(f"{what} {shown(name)} is unknown; {hint}")


class Section(BaseModel):
    """A table of the file; it cannot be changed, and knows its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for key in values:
                _refuse_unknown("key", key, list(cls.model_fields))
        return values


class OwnData(Section):
    """A data set of the user's own; a relative path is taken from where the run starts."""

    name: str
    file: str
    target: str
    categorical: tuple[str, ...] = ()
    missing: Literal["refuse", "drop"] = "refuse"


class OwnModel(Section):
    """A penalty on coefficients (local), on features (global) or on both."""

    name: str
    penalty: PenaltyName
    scope: Scope
    exponent: Positive = 0.5

    def penalties(self, local: float, global_: float, training: TrainingSpec) -> PenaltyPair:
        """The penalties at two strengths."""
        return make_penalties(
            self.penalty,
            local,
            global_,
            sharpness=training.sharpness,
            exponent=self.exponent,
            offset=training.offset,
        )


MODELS = {
    model.name: model
    for model in (
        OwnModel(name="L1", penalty="l1", scope="local"),
        OwnModel(name="Linf", penalty="l1", scope="global"),
        OwnModel(name="L0loc", penalty="l0", scope="local"),
        OwnModel(name="L0glob", penalty="l0", scope="global"),
        # The paper reports appr1 with q = 1, at which it is the l1 norm plus a constant.
        OwnModel(name="appr1", penalty="power", scope="local", exponent=1.0),
        OwnModel(name="appr2", penalty="inverse_power", scope="local", exponent=1.0),
        OwnModel(name="log", penalty="log", scope="local"),
        OwnModel(name="L1+Linf", penalty="l1", scope="both"),
        OwnModel(name="L0loc+L0glob", penalty="l0", scope="both"),
    )
}


class Folds(Section):
    """Cross-validation: "shuffled" permutes all rows, "stratified" keeps the classes' shares."""

    count: Annotated[int, Field(ge=2)] = 5
    rule: Literal["shuffled", "stratified"] = "shuffled"
    seed: int = 23


class Inner(Section):
    """Cross-validation inside every training fold, for a choice that never sees the test fold."""

    folds: Annotated[int, Field(ge=2)] = 3
    starts: Annotated[int, Field(ge=1)] = 2


class Grid(Section):
    """Strengths, weak to strong.

    With walk = "warm" every start is one walk along the strengths, each training starting from the
    tree of the one before (section 4.3 of the paper); with "fresh" each starts from the beginning.
    """

    strengths: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] = tuple(
        2.0**r for r in range(-8, 6)
    )
    walk: Literal["warm", "fresh"] = "warm"

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if not self.strengths or list(self.strengths) != sorted(set(self.strengths)):
            raise ValueError("strengths must be different numbers in ascending order")
        return self


class TrainingSpec(Section):
    """What all trees have in common.

    With loss = "log" trees are trained by likelihood: steepness has no meaning, no class rate is
    asked for unless one is named, and the depth is one more than the smallest.
    """

    loss: Literal["cost", "log"] = "cost"
    ridge: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0

    coding: Literal[
        "reported", "table", "onehot", "drop-first", "binary-once", "ordinal", "none"
    ] = "reported"
    scaling_fit: Literal["train", "all"] = "train"
    depth: Annotated[int, Field(ge=1, le=16)] | Literal["auto"] = "auto"
    steepness: Positive = 512.0
    min_class_rate: Annotated[float, Field(ge=0, le=1)] = 0.1
    sharpness: Positive = 5.0
    offset: Positive = 1e-5
    start_rule: Literal["solver", "uniform", "points", "groups"] = "solver"
    max_iter: Annotated[int, Field(ge=1)] | None = None
    time_limit: Positive | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_rate_by_likelihood(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("loss") == "log":
            return {"min_class_rate": 0.0} | values
        return values


class Spec(Section):
    """One experiment.

    Specs that name the same ``store`` share its rows. ``beside`` names experiments of that store
    whose trees, chosen by inner folds, stand beside the peers.
    """

    name: FileName
    title: str
    store: FileName | None = None
    datasets: tuple[str | OwnData, ...]
    models: tuple[str | OwnModel, ...] = ()
    solvers: tuple[str, ...] = ("native",)
    starts: Annotated[int, Field(ge=1)] = 10
    seed: int = 0
    peers: tuple[str, ...] = ()
    folds: Folds = Folds()
    only_folds: tuple[Annotated[int, Field(ge=0)], ...] | None = None
    inner: Inner | None = None
    grid: Grid = Grid()
    training: TrainingSpec = TrainingSpec()
    table: Literal["paper", "solvers", "peers"] = "paper"
    beside: tuple[str, ...] = ()
    figures: tuple[Literal["scatter", "boxes", "heatmaps"], ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.datasets:
            raise ValueError("datasets is empty; name at least one")
        if not self.models and not self.peers:
            raise ValueError("there is nothing to run; name models or peers")
        for model in self.models:
            if isinstance(model, str):
                _refuse_unknown("model", model, list(MODELS))
        for what, names in (
            ("data set", self.dataset_names),
            ("model", self.model_names),
            ("solver", self.solvers),
            ("peer", self.peers),
        ):
            twice = sorted({name for name in names if list(names).count(name) > 1})
            if twice:
                raise ValueError(f"{what} {shown(twice[0])} is named twice")
        for name in self.model_names:
            if self.model(name).penalty == "count" and self.training.loss != "log":
                raise ValueError(
                    f"model {shown(name)} counts features, which needs training.loss = 'log'"
                )
        for fold in self.only_folds or ():
            if fold >= self.folds.count:
                raise ValueError(
                    f"only_folds names {fold}, and the last one is {self.folds.count - 1}"
                )
        return self

    @model_validator(mode="after")
    def _of_a_size_that_can_be_run(self) -> Self:
        strengths = len(self.grid.strengths)
        scopes = [self.model(name).scope for name in self.model_names]
        steps = sum(strengths**2 if scope == "both" else strengths for scope in scopes)
        inner = 0 if self.inner is None else self.inner.folds * self.inner.starts
        trees = (self.starts + inner) * len(self.solvers) * steps
        folds = self.folds.count if self.only_folds is None else len(self.only_folds)
        cells = len(self.datasets) * folds * (trees + len(self.peers))
        if cells > MOST_CELLS:
            raise ValueError(
                f"these are {cells:.1e} trainings, more than {MOST_CELLS:.0e}; lower the "
                "number of starts, folds or strengths"
            )
        return self

    @property
    def dataset_names(self) -> tuple[str, ...]:
        return tuple(d if isinstance(d, str) else d.name for d in self.datasets)

    @property
    def model_names(self) -> tuple[str, ...]:
        return tuple(m if isinstance(m, str) else m.name for m in self.models)

    @property
    def store_name(self) -> str:
        """Specs that name the same store share its rows."""
        return self.store or self.name

    @property
    def fold_numbers(self) -> tuple[int, ...]:
        return tuple(range(self.folds.count)) if self.only_folds is None else self.only_folds

    def model(self, name: str) -> OwnModel:
        """The model called ``name`` in this spec."""
        own = {model.name: model for model in self.models if not isinstance(model, str)}
        return own[name] if name in own else MODELS[name]


def shipped_specs() -> list[str]:
    """Names of the specs that come with the package."""
    folder = files("softsplit.experiments").joinpath("specs")
    return sorted(
        p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml")
    )


def load_spec(name: str) -> Spec:
    """The spec of that name, or the one in the file of that path.

    Raises
    ------
    ValueError
        In one sentence: which file, which key, what is wrong with it.
    """
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise ValueError(f"there is no spec file {name!r}.")
        return parse_spec(_file_text(path), path.name)
    if name not in shipped_specs():
        close = get_close_matches(name, shipped_specs(), n=1)
        hint = f"did you mean {close[0]!r}?" if close else "or give the path of a .toml file."
        raise ValueError(
            f"there is no experiment {name!r}; there are {', '.join(shipped_specs())}; {hint}"
        )
    text = files("softsplit.experiments").joinpath("specs", f"{name}.toml")
    return parse_spec(text.read_text(encoding="utf-8"), f"{name}.toml")


def _file_text(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"{path.name} is larger than {MOST_BYTES} bytes, too large for a spec.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path.name} is not text in UTF-8 (byte {error.start}); save it as UTF-8."
        ) from None


def parse_spec(text: str, where: str) -> Spec:
    """The spec in ``text``; ``where`` is what an error calls it. Nothing in it is run."""
    if any(line.count(".") > MOST_DOTS for line in text.splitlines()):
        raise ValueError(f"{where} has a line with more than {MOST_DOTS} dots; divide the line.")
    try:
        return Spec.model_validate(tomllib.loads(text))
    except ValidationError as error:
        raise ValueError(f"{where}: {_first_problem(error)}") from None
    except RecursionError:
        raise ValueError(f"{where} is nested too deeply for a spec.") from None
    except ValueError as error:  # of the TOML, or of a number that Python does not read
        what = str(error).split(";")[0].rstrip(".")
        raise ValueError(f"{where} is not valid TOML: {what}.") from None


def _first_problem(error: ValidationError) -> str:
    # A table that could also have been a name is reported as both; a table it is.
    tables = ("OwnData", "OwnModel")
    problems = [
        p
        for p in error.errors()
        if not (p["loc"][-1:] == ("str",) and isinstance(p["input"], dict))
    ]
    problem = problems[0]
    place = ".".join(str(part) for part in problem["loc"] if part not in (*tables, "str"))
    message = problem["msg"].removeprefix("Value error, ").rstrip(".")
    given = "" if isinstance(problem["input"], dict) else f", got {shown(problem['input'])}"
    if problem["type"] == "missing":
        return f"{place} is missing; add it."
    if message.startswith("Input should be ") and place:
        needed = message.removeprefix("Input should be ")
        for other, plain in (("greater than or equal to", "at least"), ("a valid ", "a ")):
            needed = needed.replace(other, plain)
        return f"{place} must be {needed.replace('less than or equal to', 'at most')}{given}."
    sentence = message if problem["type"] == "value_error" else f"{message}{given}"
    sentence = sentence if sentence.endswith("?") else f"{sentence}."
    return f"{place}: {sentence}" if place else sentence
