"""Edits by hand: each against the edited text, read by a person; chains; files, graphs, exports."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_wine

import softsplit
from export_runs import RUNNERS
from printed_tree import PrintedTree
from softsplit import SoftTreeClassifier, export_markdown, export_text
from softsplit.reading.outline import outline
from tables import patients

DAY = "2026-11-18"


@cache
def case(name):
    """A fitted tree with its rows and classes."""
    kind, X, y = {}, None, None
    if name == "table":
        X, y = patients(160)
    elif name == "plain":
        X, y = load_breast_cancer(return_X_y=True)
        X, y, kind = X[:150, :6], y[:150], {"curves": False}
    else:
        X, y = load_wine(return_X_y=True, as_frame=True)
        y = y.map({0: "barolo", 1: "grignolino", 2: "barbera"})
        X = X[["alcohol", "flavanoids", "color_intensity", "hue", "proline"]]
        kind = {
            "wine": {},
            "ranks": {"scale": "quantile"},
            "mixture": {"decision": "mixture"},
            "cost": {"loss": "cost", "effort": "fast", "global_strength": 0.01},
        }[name]
    tree = SoftTreeClassifier(n_starts=1, random_state=0, points=False, **kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tree.fit(X, y), X, y


WALKED = ("wine", "plain", "table", "ranks")


def as_frame(tree, X):
    X = X if hasattr(X, "columns") else pd.DataFrame(X, columns=tree.tree_.feature_names)
    if not tree.tree_.scaling.linear:  # the text lists five ranks: a person needs them all
        ranks = tree.tree_.scaling.transform(X.to_numpy())
        X = X.assign(**{f"rank({name})": ranks[:, j] for j, name in enumerate(X.columns)})
    return X


def agrees(tree, X, text=None, tolerance=1e-8, rows=25):
    """Whether a person with the text arrives at what the tree predicts, and its probabilities."""
    text = export_text(tree) if text is None else text
    reader, frame = PrintedTree(text), as_frame(tree, X)
    chosen = np.linspace(0, len(frame) - 1, rows).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        some = X.iloc[chosen] if hasattr(X, "iloc") else X[chosen]
        said, proba = tree.predict(some), tree.predict_proba(some)
    listed = frame.iloc[chosen].to_dict("records")
    if reader.gates:
        assert [reader.class_of(row) for row in listed] == [str(label) for label in said]
        if not tree.tree_.scaling.linear:
            return True  # gates on ranks are those of training, not those that are printed
        read = np.array(
            [[found[str(k)] for k in tree.classes_] for found in map(reader.probabilities, listed)]
        )
        assert_allclose(proba, read, atol=tolerance)
    return True


# --- verbs against texts edited by hand -----------------------------------------------------------


def replaced(text, *pairs):
    for old, new in pairs:
        assert text.count(old) == 1, (old, text)
        text = text.replace(old, new)
    return text


def gate_of(text, question):
    return re.search(rf"    question {question}: centre (\S+), width (\S+)", text)


@pytest.mark.parametrize("name", ["wine", "plain"])
def test_a_threshold_moves_the_walk_and_the_gate(name):
    tree, X, _ = case(name)
    text = export_text(tree)
    bound = re.search(r"([<>]) (\S+)   \[question 1\]", text)
    gate = gate_of(text, 1)
    old = float(bound[2])
    new = round(old + float(gate[2]), 4)
    centre = float(f"{float(gate[1]) + new - old:.12g}")
    by_hand = replaced(
        text,
        (f"{bound[0]}", f"{bound[1]} {new!r}   [question 1]"),
        (gate[0], f"    question 1: centre {centre!r}, width {gate[2]}"),
    )
    edited = tree.edit(date=DAY).set_threshold(1, new, reason="a round number")
    assert agrees(edited, X, by_hand)
    assert agrees(edited, X)
    assert np.any(edited.predict_proba(X) != tree.predict_proba(X))
    assert export_text(edited).endswith(
        f"edits:\n    {DAY} set_threshold(question=1, value={new!r}) - a round number"
    )
    assert export_text(tree) == text and tree.edits_ == []


def test_a_weight_is_that_of_the_text():
    tree, X, _ = case("wine")
    text = export_text(tree)
    condition = re.search(r"if (.*) [<>] \S+   \[question 1\]", text)[1]
    first = re.match(r"(?:- )?(?:[\d.]+ )?(\w+)", condition)[1]
    split = outline(tree.tree_).questions()[0].split
    names = tree.tree_.feature_names
    other = next(name for j, name in enumerate(names) if j not in split.features)
    by_hand = text.replace(condition, f"2.5 {condition} + 0.25 {other}", 1)
    edited = tree.edit(date=DAY).set_weight(1, first, 2.5).set_weight(1, other, 0.25)
    assert agrees(edited, X, by_hand)
    assert agrees(edited, X)
    gone = edited.set_weight(1, other, 0)
    assert other not in re.search(r"if (.*)   \[question 1\]", export_text(gone))[1]
    assert agrees(gone.set_weight(1, first, 1), X, text)


@pytest.mark.parametrize("name", WALKED)
def test_rounded_weights_keep_the_level_of_their_sums(name):
    tree, X, _ = case(name)
    edited = tree.edit(date=DAY).round_weights(1)
    assert agrees(edited, X, tolerance=0.006 if name == "table" else 1e-8)
    walk = edited.tree_.walk
    for c in walk.coefficients[walk.coefficients != 0]:
        assert float(f"{c:.0e}") == c
    assert np.mean(edited.predict(X) == tree.predict(X)) > 0.9
    model = tree.tree_
    for t in np.flatnonzero(np.any(walk.coefficients != model.walk.coefficients, axis=1)):
        mean = model.summary.scaled_mean
        if not walk.ranked[t]:
            mean = np.array([model.scaling.to_original(j, m) for j, m in enumerate(mean)])
        shift = (walk.coefficients[t] - model.walk.coefficients[t]) @ mean
        width = float(gate_of(export_text(edited), 1)[2]) if t == 0 else 1.0
        assert abs(walk.thresholds[t] - model.walk.thresholds[t] - shift) <= 0.021 * width
    assert set(edited.tree_.edits.weights) == set(zip(*np.nonzero(walk.coefficients), strict=True))


def test_a_feature_that_is_dropped_counts_as_its_mean():
    tree, X, _ = case("plain")
    split = outline(tree.tree_).questions()[0].split
    feature, mean = split.features[-1], X.copy()
    assert len(split.features) > 1
    edited = tree.edit(date=DAY).drop_feature(feature)
    assert feature not in edited.tree_.selected_features
    assert agrees(edited, X)
    mean[:, feature] = X[:, feature].mean()
    assert_allclose(edited.predict_proba(X), tree.predict_proba(mean), atol=0.03)
    with pytest.raises(ValueError, match="does not use"):
        edited.drop_feature(feature)


def test_a_leaf_has_the_class_or_the_probabilities_that_it_was_given():
    tree, X, _ = case("wine")
    text = export_text(tree)
    there = re.search(r"    leaf 2: (.*)", text)[1]
    told = {"barbera": 0.25, "barolo": 0.15, "grignolino": 0.6}
    by_hand = text.replace(there, "barbera 25 %, barolo 15 %, grignolino 60 %")
    label = re.search(r"class (\w+)   (.*\[leaf 2\])", text)
    by_hand = by_hand.replace(label[0], f"class grignolino   {label[2]}")
    edited = tree.edit(date=DAY).set_leaf(2, told)
    assert agrees(edited, X, by_hand)
    assert agrees(edited, X) and agrees(tree.edit().set_leaf(2, list(told.values())), X, by_hand)
    called = tree.edit(date=DAY).set_leaf(2, "barbera")
    assert agrees(
        called,
        X,
        text.replace(label[0], f"class barbera   {label[2]}").replace(
            there, re.search(r"    leaf 2: (.*)", export_text(called))[1]
        ),
    )
    end = outline(called.tree_).ends()[1]
    shares = called.tree_.leaf_shares[:, end.leaf]
    assert shares[0] >= shares.max() - 0.002  # classes above it are lowered to it


def test_a_pruned_question_is_one_side_or_one_leaf():
    tree, X, _ = case("wine")
    text = export_text(tree)
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if "[question 2]" in line)
    depth = lines[start].count("|   ")
    other = next(i for i in range(start + 1, len(lines)) if lines[i] == "|   " * depth + "else")
    end = next(i for i in range(other + 1, len(lines)) if lines[i].count("|   ") <= depth)
    sides = {"yes": (start + 1, other), "no": (other + 1, end)}
    for answer, (a, b) in sides.items():
        kept = [line.replace("|   ", "", 1) for line in lines[a:b]]
        by_hand = "\n".join([*lines[:start], *kept, *lines[end:]])
        edited = tree.edit(date=DAY).prune(2, answer)
        assert agrees(edited, X, by_hand) and agrees(edited, X)
    merged = tree.edit(date=DAY).prune(2)
    assert agrees(merged, X)
    model, question = tree.tree_, outline(tree.tree_).questions()[1]
    below = list(question.leaves)
    counts = model.walk.counts[:, below]
    leaf = next(e for e in outline(merged.tree_).ends() if (e.depth, e.side) == (1, question.side))
    assert merged.tree_.walk.counts[:, list(leaf.leaves)].sum() == counts.sum()
    assert_allclose(
        merged.tree_.leaf_shares[:, leaf.leaf],
        model.leaf_shares[:, below] @ counts.sum(axis=0) / counts.sum(),
        atol=1e-3,
    )


@pytest.mark.parametrize(
    ("verb", "given", "said"),
    [
        ("set_threshold", (9, 1.0), "no question 9"),
        ("set_threshold", (1, "5"), "value must be a number"),
        ("set_weight", (1, "age", 1.0), "no feature 'age'"),
        ("set_leaf", (7, "barolo"), "no leaf 7"),
        ("set_leaf", (1, "chianti"), "no class 'chianti'"),
        ("set_leaf", (1, [0.5, 0.1, 0.1]), "add up to 1"),
        ("set_leaf", (1, {"barolo": "most"}), "takes a class or one probability for each class"),
        ("prune", (1, "maybe"), "answer must be"),
        ("rename", (), "rename needs"),
        ("round_weights", (0,), "digits must be"),
        ("drop_feature", ("nothing",), "no feature 'nothing'"),
    ],
)
def test_what_cannot_be_done_is_said(verb, given, said):
    with pytest.raises(ValueError, match=said):
        getattr(case("wine")[0].edit(), verb)(*given)


# --- chains ---------------------------------------------------------------------------------------


def random_edit(tree, rng):
    """One edit that is possible, and whether the tree took it."""
    model = tree.tree_
    root = outline(model)
    questions, ends = root.questions(), root.ends()
    verb = rng.choice(
        ["set_threshold", "set_weight", "round_weights", "set_leaf", "prune", "drop_feature"]
    )
    names, labels = model.feature_names, model.labels
    number = int(rng.integers(1, len(questions) + 1)) if questions else 1
    if verb == "set_leaf":
        leaf = int(rng.integers(1, len(ends) + 1))
        value = labels[rng.integers(len(labels))]
        if rng.random() < 0.5:
            value = np.round(rng.dirichlet(np.ones(len(labels))), 3)
            value[-1] = 1 - value[:-1].sum()
        return tree.set_leaf(leaf, value)
    if not questions:
        return tree
    split = questions[number - 1].split
    if verb == "set_threshold":
        if split.lefts is not None or not split.features:
            return tree
        spread = 3 * abs(split.gate_width) if not split.sure else np.ptp(split.sure)
        return tree.set_threshold(number, round(split.threshold + rng.normal() * spread, 3))
    if verb == "set_weight":
        j = int(rng.integers(len(names)))
        value = 0 if rng.random() < 0.3 else round(float(rng.normal()), 2) or 1.0
        if value == 0 and set(split.features) <= {j}:
            return tree
        return tree.set_weight(number, names[j], value)
    if verb == "round_weights":
        return tree.round_weights(int(rng.integers(1, 4)))
    if verb == "prune":
        return tree.prune(number, rng.choice([None, "yes", "no"]))
    used = model.selected_features
    return tree.drop_feature(names[rng.choice(used)]) if len(used) > 1 else tree


CASES = ("wine", "plain", "table", "ranks", "mixture", "cost")


@pytest.mark.parametrize("name", CASES)
def test_random_chains_leave_a_tree_that_is_what_is_printed(name):
    tree, X, _ = case(name)
    for seed in range(15):
        rng = np.random.default_rng([seed, CASES.index(name)])
        edited = tree.edit(date=DAY)
        for _ in range(int(rng.integers(1, 7))):
            edited = random_edit(edited, rng)
        indicator = any(q.split.lefts is not None for q in outline(edited.tree_).questions())
        if name in WALKED:
            assert agrees(edited, X, tolerance=0.006 if indicator else 1e-6, rows=12)
        else:
            export_text(edited)
        if edited.edits_:
            text = softsplit.dumps_model(edited)
            again = softsplit.loads_model(text)
            assert softsplit.dumps_model(again) == text
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert_array_equal(again.predict_proba(X), edited.predict_proba(X))
            assert again.edits_ == edited.edits_


@pytest.mark.parametrize("name", ["wine", "table", "cost"])
def test_an_edited_tree_survives_files_graphs_and_exports(name, tmp_path):
    tree, X, _ = case(name)
    rng = np.random.default_rng(5)
    edited = tree.edit(date=DAY)
    while len(edited.edits_) < 4:
        made = random_edit(edited, rng)
        edited = made if outline(made.tree_).questions() else edited
    softsplit.save_model(edited, tmp_path / "tree.json")
    again = softsplit.load_model(tmp_path / "tree.json")
    proba, said = edited.predict_proba(X), [str(label) for label in edited.predict(X)]
    assert_array_equal(again.predict_proba(X), proba)
    assert export_text(again) == export_text(edited)
    assert export_markdown(again).count(DAY) == len(edited.edits_)
    for runner in ("python", "sqlite"):
        labels, found = RUNNERS[runner](edited, as_frame(edited, X))
        assert list(labels) == said
        assert_allclose(found, proba, atol=1e-9)
    runtime = pytest.importorskip("onnxruntime")
    if name != "table":
        graph = softsplit.export_onnx(edited).SerializeToString()
        session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        labels, found = session.run(["label", "probabilities"], {"X": X.to_numpy(dtype=float)})
        assert [str(label) for label in labels] == said
        assert_allclose(found, proba, atol=1e-9)


def test_the_list_of_edits_goes_on_and_can_be_repeated():
    tree, X, _ = case("wine")
    first = tree.edit(date=DAY).set_threshold(1, 2.5, reason="policy\nof the house")
    later = softsplit.loads_model(softsplit.dumps_model(first)).edit(date="2026-12-01").prune(2)
    assert [edit.date for edit in later.edits_] == [DAY, "2026-12-01"]
    assert "policy\nof" not in export_text(later)
    known = {"tree": tree}
    exec(first.code, known)
    assert_array_equal(known["edited"].predict_proba(X), first.predict_proba(X))
    assert later.original_.edits.listed == first.tree_.edits.listed
    smaller = replace(later.simplify(X).tree_, edits=later.tree_.edits)
    assert smaller.edits.thresholds == later.tree_.edits.thresholds
