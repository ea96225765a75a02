"""Trees under requirements: do they hold, and what do they cost?

    python benchmarks/requirements.py monotone      one part of the issue each, with its own figures

``costs`` and ``fairness`` stand in modules of their own, requirements_costs.py and
so on.

``monotone``:

1. Random problems of 2 to 6 classes with numbers, one of them with missing values, a category and
   an ordered column, both losses: pairs of rows that differ in one monotone column alone, both in
   any range, and how many of them contradict the tree; whether ``check_monotone`` proves it.
2. Shared sets: accuracy on held-out rows of a free tree, and of one whose two most important
   numbers must have the sign that they have in the free tree; beside histogram boosting, free and
   with ``monotonic_cst`` (two classes only), and ebm where it is installed.
3. Few rows (50) of a monotone truth: the same on 2,000 new rows, also without a penalty.

The table goes to docs/results/requirements.md with --document.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import add_options, put_into
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold

from monotone_cases import coded_violations, table
from softsplit import SoftTreeClassifier
from softsplit.data.named import file_of

SETS = (
    "balance-scale", "banknote", "contraceptive", "credit-approval", "diabetes", "german-credit",
    "ionosphere", "iris", "seeds", "vehicle", "wdbc", "wine",
)  # fmt: skip


# --- monotone -------------------------------------------------------------------------------------


def wish_of(number: int, n_classes: int) -> dict[str, Any]:
    """What is asked of a random problem: its own signs, of all classes or of one."""
    if n_classes > 2 and number % 2:
        return {"a": {f"k{n_classes - 1}": "+"}, "e": {f"k{n_classes - 1}": "-"}}
    return {"a": "+", "e": "-", "o": "+"} if number % 3 else {"e": "-"}


def random_problems(count: int, pairs: int) -> dict[str, Any]:
    """Fit random problems and count contradictions."""
    found = {"log": [0, 0, 0, 0], "cost": [0, 0, 0, 0]}  # problems, effects, proved, contradictions
    for number in range(count):
        n_classes, loss = 2 + number % 5, "cost" if number % 4 == 3 else "log"
        frame, y = table(1000 + number, n_classes, 120 + 15 * (number % 9))
        given: dict[str, Any] = {"n_starts": 1, "random_state": number}
        if loss == "cost":
            given.update(effort=0.05, global_strength=0.001 * len(y), max_iter=200)
        wish = wish_of(number, n_classes)
        tree = SoftTreeClassifier(loss=loss, monotone=wish, **given).fit(frame, y)
        tally = found[loss]
        tally[0] += 1
        for column in wish:
            check = tree.check_monotone(column)
            tally[1] += 1
            tally[2] += check.proved
            tally[3] += coded_violations(tree, frame, column, pairs)
        print(f"{number} {loss} {n_classes} {tally}", file=sys.stderr)
    return found


def shared_table(name: str, most: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of a shared set, at most ``most`` of them."""
    path = file_of(name)
    assert path is not None, f"{name} is not there: set SOFTSPLIT_DATA"
    frame = pd.read_csv(path)
    if len(frame) > most:
        frame = frame.sample(most, random_state=seed)
    frame = frame.reset_index(drop=True)
    y = frame.pop("class").astype(str).to_numpy()
    return frame, y


def own_signs(tree: SoftTreeClassifier, frame: pd.DataFrame, most: int = 2) -> dict[str, Any]:
    """The most important numbers of a free tree with the signs they have there."""
    wish: dict[str, Any] = {}
    n_classes = len(tree.classes_)
    order = np.argsort(-tree.feature_importances_, kind="stable")
    for j in order.tolist():
        name = frame.columns[j]
        number = pd.api.types.is_numeric_dtype(frame[name]) and tree.feature_importances_[j] > 0
        if not number or len(wish) == most:
            continue
        last = str(tree.classes_[-1])
        signs = []
        for sign in ("+", "-"):
            asked = sign if n_classes == 2 else {last: sign}
            signs.append(falls(tree, frame, name, sign))
            if signs[-1] <= 0.01:
                wish[name] = asked
                break
    return wish


def falls(tree: SoftTreeClassifier, frame: pd.DataFrame, name: str, sign: str) -> float:
    """How far the last class moves against a sign between two quantiles, in the mean."""
    low, high = frame.copy(), frame.copy()
    low[name], high[name] = frame[name].quantile(0.1), frame[name].quantile(0.9)
    moved = tree.predict_proba(high)[:, -1] - tree.predict_proba(low)[:, -1]
    return float(np.mean(np.maximum(-moved if sign == "+" else moved, 0.0)))


def boosting(wish: dict[str, Any] | None, frame: pd.DataFrame) -> Any:
    """Histogram boosting, perhaps with constraints on the probability of the second class."""
    signs = {"+": 1, "-": -1}
    constraints = None if wish is None else {name: signs[sign] for name, sign in wish.items()}
    return HistGradientBoostingClassifier(
        random_state=0, categorical_features="from_dtype", monotonic_cst=constraints
    )


def ebm(wish: dict[str, Any] | None, frame: pd.DataFrame) -> Any:
    """Explainable boosting, perhaps with constraints."""
    from interpret.glassbox import ExplainableBoostingClassifier

    signs = {"+": 1, "-": -1}
    wanted = [signs.get((wish or {}).get(name, ""), 0) for name in frame]
    return ExplainableBoostingClassifier(
        interactions=0, random_state=0, monotone_constraints=wanted if wish else None
    )


def peers() -> dict[str, Any]:
    return {"boosting": boosting} | ({"ebm": ebm} if find_spec("interpret") else {})


def typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Texts as categories, as boosting wants them."""
    made = frame.copy()
    for name in made:
        if not pd.api.types.is_numeric_dtype(made[name]):
            made[name] = made[name].astype("category")
    return made


def scores(
    train: tuple[pd.DataFrame, np.ndarray],
    test: tuple[pd.DataFrame, np.ndarray],
    wish: dict[str, Any] | None,
    n_starts: int,
    loss: str = "log",
) -> dict[str, Any]:
    """Held-out accuracy of free and constrained trees and peers; ``wish`` None: own signs."""
    given: dict[str, Any] = {"n_starts": n_starts, "random_state": 0, "loss": loss}
    if loss == "cost":
        given.update(effort=0.1, global_strength=0.002 * len(train[1]), min_class_rate=0.0)
    free = SoftTreeClassifier(**given).fit(*train)
    wish = own_signs(free, train[0]) if wish is None else wish
    tree = SoftTreeClassifier(**given, monotone=wish or None).fit(*train)
    found = {"free": free.score(*test), "monotone": tree.score(*test), "columns": len(wish)}
    found["proved"] = all(tree.check_monotone(column).proved for column in wish)
    found["free holds"] = sum(bool(free.check_monotone(c, s)) for c, s in wish.items())
    if len(tree.classes_) == 2 and loss == "log":
        first, other = (typed(part) for part in (train[0], test[0]))
        for name in first:
            if isinstance(first[name].dtype, pd.CategoricalDtype):
                other[name] = other[name].cat.set_categories(first[name].cat.categories)
        for peer, make in peers().items():
            for kind, signs in ((peer, None), (f"{peer} monotone", wish)):
                model = make(signs, first).fit(first, train[1])
                found[kind] = model.score(other, test[1])
    return found


def shared_sets(folds: int, most: int, losses: tuple[str, ...]) -> pd.DataFrame:
    rows = []
    for name in SETS:
        for loss in losses:
            frame, y = shared_table(name, most, 0)
            splits = StratifiedKFold(3, shuffle=True, random_state=0).split(frame, y)
            for number, (train, test) in enumerate(splits):
                if number >= folds:
                    break
                parts = [
                    (frame.iloc[part].reset_index(drop=True), y[part]) for part in (train, test)
                ]
                found = scores(parts[0], parts[1], None, 3 if loss == "log" else 2, loss)
                rows.append({"set": name, "loss": loss, "fold": number} | found)
                print(rows[-1], file=sys.stderr)
    return pd.DataFrame(rows)


def monotone_truth(seed: int, n_rows: int) -> tuple[pd.DataFrame, np.ndarray, dict[str, Any]]:
    """Eight numbers, classes with monotone effects of some of them, and their signs.

    By turns: six effects that add up, of which two bend; two effects that level off; and two that
    act together, the smaller one deciding, with a third.
    """
    rng, kind = np.random.default_rng(seed), seed % 3
    X = rng.normal(size=(n_rows, 8))
    if kind == 0:
        score = X[:, 0] + 2 * np.tanh(2 * X[:, 1]) - np.maximum(X[:, 2], 0) + 0.7 * X[:, 3]
        score, signs = score - 0.5 * X[:, 4] + 0.5 * X[:, 5], "++-+-+"
    elif kind == 1:
        score, signs = 3 * np.tanh(2 * X[:, 0]) - 2 * np.tanh(2 * X[:, 1]), "+-"
    else:
        score, signs = 1 + 3 * np.minimum(X[:, 0], X[:, 1]) + X[:, 2], "+++"
    y = score + rng.logistic(size=n_rows) > 0
    wish = dict(zip("abcdefgh", signs, strict=False))
    return pd.DataFrame(X, columns=list("abcdefgh")), np.where(y, "yes", "no"), wish


def few_rows(count: int, n_rows: int) -> pd.DataFrame:
    """Held-out accuracy with the default penalty, and of trees without one."""
    rows = []
    for number in range(count):
        *train, wish = monotone_truth(number, n_rows)
        *test, _ = monotone_truth(number + 3_000_000, 2000)
        found = scores(tuple(train), tuple(test), wish, 2)
        for name, signs in (("large free", None), ("large monotone", wish)):
            given = {"penalty": None, "n_starts": 2, "random_state": 0, "monotone": signs}
            found[name] = SoftTreeClassifier(**given).fit(*train).score(*test)
        rows.append({"problem": number} | found)
        print(rows[-1], file=sys.stderr)
    return pd.DataFrame(rows)


def percent(values: Any) -> str:
    return f"{100 * float(np.mean(values)):.1f} %"


def holds_text(args: argparse.Namespace) -> list[str]:
    found = random_problems(args.problems, args.pairs)
    lines = [
        f"**It holds.** {args.problems} random problems of 2 to 6 classes, 120 to 240 rows, "
        f"numbers (one with missing values), a category and an ordered column; {args.pairs:,} "
        "random pairs of rows for each effect that differ in its column alone, with columns "
        "drawn by themselves and the column itself from three standard deviations. A pair "
        "contradicts an effect if a probability that must not fall falls by more than 1e-9, or "
        'the predicted class goes the wrong way (of several classes with `loss="cost"`, which '
        "predicts by mixture, probabilities only).",
        "",
        "| loss | problems | effects | proved for all inputs | pairs that contradict |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {loss} | " + " | ".join(map(str, told)) + " |" for loss, told in found.items()]
    if any(told[-1] for told in found.values()):
        raise SystemExit("\n".join([*lines, "", "Pairs of rows contradict an effect."]))
    return lines


KINDS = ("boosting", "boosting monotone", "ebm", "ebm monotone")


def costs_text(args: argparse.Namespace) -> list[str]:
    sets = shared_sets(args.folds, args.rows, ("log", "cost") if args.cost else ("log",))
    lines = [
        f"**What it costs.** Accuracy on held-out rows of shared sets ({args.folds} of 3 folds, at "
        f"most {args.rows:,} rows), default settings but 3 starts (2 with the cost). The two most "
        "important numbers of the free tree must have the sign they have in it (of several "
        "classes, on the last). Boosting can do so for two classes only."
        + ("" if find_spec("interpret") else " EBM was not installed and is not measured."),
        "",
    ]
    named = [name for name in KINDS if name in sets]
    heads = ["set", "loss", "columns", "free tree", "monotone tree", "proved", *named]
    lines += ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for (name, loss), part in sets.groupby(["set", "loss"], sort=False):
        proved = "yes" if part["proved"].all() else "no"
        cells = [name, loss, f"{part['columns'].mean():.1f}", percent(part["free"])]
        cells += [percent(part["monotone"]), proved]
        cells += [percent(part[k]) if part[k].notna().all() else "-" for k in named]
        lines.append("| " + " | ".join(cells) + " |")
    for loss, part in sets.groupby("loss", sort=False):
        gap = 100 * float((part["monotone"] - part["free"]).mean())
        lines += ["", f'Mean with `loss="{loss}"`: {gap:+.2f} points against the free tree.']
    return lines


def gains_text(args: argparse.Namespace) -> list[str]:
    few = few_rows(args.few, 50)
    named = [k for k in KINDS if k in few]
    kinds = {
        "free": "free tree", "monotone": "monotone tree",
        "large free": "free, `penalty=None`", "large monotone": "monotone, `penalty=None`",
        **{name: name for name in named},
    }  # fmt: skip
    lines = [
        f"**What it gains.** {args.few} problems of 50 training rows of a monotone truth (six "
        "effects that add up, two that level off, or two of which the smaller one decides; the "
        "other ones of eight columns are noise), on 2,000 new rows each:",
        "",
        "| " + " | ".join(kinds.values()) + " |",
        "|" + "---|" * len(kinds),
        "| " + " | ".join(percent(few[k]) for k in kinds) + " |",
        "",
    ]
    for told, pair in (("by default", ("monotone", "free")),
                       ("without a penalty", ("large monotone", "large free"))):  # fmt: skip
        gains = 100 * (few[pair[0]] - few[pair[1]])
        lines.append(
            f"The monotone tree is {gains.mean():+.2f} points from the free one {told} (standard "
            f"error {gains.std() / len(gains) ** 0.5:.2f})."
        )
    return lines


def monotone(args: argparse.Namespace) -> None:
    parts = {"holds": holds_text, "costs": costs_text, "gains": gains_text}
    for name in args.only or parts:
        put_into(args.document, "\n".join(parts[name](args)), f"monotone {name}")


def other_part(args: argparse.Namespace) -> None:
    """A part in a module of its own."""
    lines = importlib.import_module(f"requirements_{args.part}").lines()
    put_into(args.document, "\n".join(lines), args.part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="part", required=True)
    part = parts.add_parser("monotone", help="monotone effects")
    part.add_argument("--only", nargs="+", choices=("holds", "costs", "gains"), help="some figures")
    add_options(
        part,
        problems=(200, "random problems"),
        pairs=(100_000, "pairs of rows for each effect"),
        folds=(1, "folds of each shared set, up to 3"),
        rows=(1000, "most rows of a shared set"),
        few=(48, "problems of 50 rows"),
        cost=(False, "shared sets with loss='cost' as well"),
    ).set_defaults(run=monotone)
    for name in ("costs", "fairness"):
        parts.add_parser(name).set_defaults(run=other_part)
    for command in parts.choices.values():
        add_options(command, document=(Path, "document that gets the figures"))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.run(args)


if __name__ == "__main__":
    main()
