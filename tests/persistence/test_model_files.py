"""Model files: what is written is read back to the bit, and nothing else is read at all."""

from __future__ import annotations

import copy
import importlib
import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

import softsplit
from export_cases import stored_case
from places import FILES
from readings import TREES, alter, classifier_and_frame, random_classifier
from slow_cases import examples
from softsplit import SoftTreeClassifier
from softsplit.persistence import (
    SKOPS_TYPES,
    ModelFileError,
    dumps_model,
    load_model,
    load_tree,
    loads_model,
    save_model,
)
from softsplit.persistence.schema import schema
from softsplit.tree.scaling import KINDS

SCHEMA_FILE = Path(softsplit.__file__).parent / "persistence" / "model-1.schema.json"
DEFINITIONS = json.loads(SCHEMA_FILE.read_text())["$defs"]
SCHEMA = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))
STORED = sorted(FILES.glob("model-v1-*.json"))


@pytest.fixture(scope="module")
def document():
    tree, _ = random_classifier(7, depth=2, kind="quantile")
    return json.loads(dumps_model(tree))


def stored(name):
    return json.loads((FILES / f"model-v1-{name}.json").read_text(encoding="utf-8"))


# --- round trips --------------------------------------------------------------------------------


@given(**TREES)
@examples(15)
def test_a_loaded_tree_is_the_tree(seed, depth, kind, labels):
    tree, X = classifier_and_frame(seed, depth, kind, labels)
    text = dumps_model(tree)
    SCHEMA.validate(json.loads(text))
    for other in (loads_model(text), loads_model(text.encode())):
        np.testing.assert_array_equal(other.predict_proba(X), tree.predict_proba(X))
        np.testing.assert_array_equal(other.predict(X), tree.predict(X))
        assert other.classes_.dtype.kind == tree.classes_.dtype.kind
        for name in (
            "weights_", "thresholds_", "coef_", "intercept_", "feature_importances_",
            "leaf_classes_", "leaf_distributions_",
        ):  # fmt: skip
            np.testing.assert_array_equal(getattr(other, name), getattr(tree, name))
        np.testing.assert_array_equal(other.tree_.leaf_votes, tree.tree_.leaf_votes)
        if depth == 1:
            assert str(other.explain(X.iloc[0])) == str(tree.explain(X.iloc[0]))
        assert dumps_model(other) == text


def test_a_trained_tree_on_disk(tmp_path):
    X, y = load_iris(return_X_y=True)
    costs = np.array([[0, 1, 1], [1, 0, 2], [1, 1, 0]])
    tree = SoftTreeClassifier(
        global_strength=1.0,
        cost_matrix=costs,
        class_weight={0: 1, 1: 2, 2: 1.5},
        n_starts=2,
        random_state=np.random.RandomState(0),
    ).fit(X, y.astype(np.int32))
    path = tmp_path / "tree.json"
    save_model(tree, path)
    save_model(tree, path)  # an existing file is replaced
    assert [file.name for file in tmp_path.iterdir()] == ["tree.json"]
    other = load_model(path)
    np.testing.assert_array_equal(other.predict_proba(X), tree.predict_proba(X))
    assert not hasattr(other, "feature_names_in_")
    assert other.class_weight == {0: 1, 1: 2, 2: 1.5}
    assert other.cost_matrix == costs.tolist()
    assert other.objective_ == tree.objective_ and other.n_iter_ == tree.n_iter_
    assert not hasattr(other, "solution_")
    assert json.loads(path.read_text())["training"]["omitted"] == ["random_state"]
    # The parameters are those of the training, so that it can be trained again.
    again = clone(other).set_params(random_state=0).fit(X, y)
    assert again.score(X, y) > 0.9


def test_what_cannot_be_saved_is_refused():
    with pytest.raises(TypeError, match="a SoftTreeClassifier is needed, got list"):
        dumps_model([])
    tree, _ = random_classifier(1, n_classes=2)
    alter(tree, classes=np.array([b"a", b"b"]))
    with pytest.raises(ValueError, match=r"labels of type \|S1 cannot be written to a model file"):
        dumps_model(tree)


HALF = "of the model file holds an unpaired surrogate character"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("classes", np.array(["a", "\ud800"]), rf"classes.values\[1\] {HALF}"),
        ("classes", np.array(["a", "b\udfff"], object), rf"classes.values\[1\] {HALF}"),
        ("feature_names", tuple("abcd\udc00"), rf"features.names\[4\] {HALF}"),
        ("feature_names", tuple("abcda"), "two features .* the same name"),
        ("random_state", 10**5000, "one of its parameters is a very long integer"),
        ("random_state", "\udfff", rf"training.parameters.random_state {HALF}: '.udfff'"),
        ("objective", np.nan, "training.objective of the model file: expected 'float' >="),
        ("n_iter", -1, "training.n_iter of the model file: expected 'int' >= 0"),
    ],
    ids=range(8),
)
def test_what_would_not_be_read_is_not_written(tmp_path, name, value, sentence):
    tree, _ = random_classifier(1, n_classes=2)
    if hasattr(tree.tree_, name):
        alter(tree, **{name: value})
    else:
        setattr(tree, name, value)
    path = tmp_path / "tree.json"
    path.write_text("before")
    for save in (dumps_model, lambda tree: save_model(tree, path)):
        with pytest.raises(ModelFileError, match=f"^the tree cannot be saved: .*{sentence}") as e:
            save(tree)
        assert str(e.value).endswith(".") and len(str(e.value)) < 220
    assert path.read_text() == "before" and len(list(tmp_path.iterdir())) == 1


def test_a_file_larger_than_is_read_is_written_when_asked_for(tmp_path):
    tree, _ = random_classifier(1, n_classes=2)
    alter(tree, classes=np.array(["a", "\N{EURO SIGN}" * 100]))  # three bytes each
    path = tmp_path / "tree.json"
    size = len(dumps_model(tree).encode())
    save_model(tree, path, max_bytes=size)
    assert load_model(path, max_bytes=size).classes_.tolist() == tree.classes_.tolist()
    sentence = f"would have {size} bytes, more than {size - 1}; raise max_bytes here, and again"
    with pytest.raises(ModelFileError, match=sentence):
        save_model(tree, path, max_bytes=size - 1)
    with pytest.raises(ModelFileError, match="larger than"):
        load_model(path, max_bytes=size - 1)


# --- files of version 1, kept -------------------------------------------------------------------


PARAMETERS_WRITTEN = re.compile(
    r'    "parameters": (\{.*?\n    \}),\n    "omitted": .*?\n', re.DOTALL
)
SOFTWARE = re.compile(r'  "software": .*\n')


def parts_of(text):
    """The text without what depends on the version, and the parameters."""
    parameters = PARAMETERS_WRITTEN.search(text)
    rest = SOFTWARE.sub("", PARAMETERS_WRITTEN.sub("", text))
    return rest, json.loads(parameters[1]) if parameters else {}


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem.removeprefix("model-v1-"))
def test_stored_files_predict_what_they_did_and_are_written_again(path):
    """Of each section and kind: tests/persistence/stored_models.py has written them."""
    text = path.read_text(encoding="utf-8")
    recorded = json.loads(path.with_suffix(".expected").read_text())
    tree, X = stored_case(path.stem)
    for model in (tree, load_tree(path)):
        number = model.tree_.numbers is not None
        proba = model.predict(X)[:, None] if number else model.predict_proba(X)
        np.testing.assert_allclose(proba, recorded["probabilities"], rtol=0, atol=1e-12)
        assert model.predict(X).tolist() == recorded["labels"]
    SCHEMA.validate(json.loads(text))
    (old, given), (new, written) = parts_of(text), parts_of(dumps_model(tree))
    assert new == old
    assert {name: written[name] for name in given} == given


def test_there_are_stored_files_of_each_section_and_scaling():
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in STORED]
    assert {document["scaling"]["kind"] for document in documents} == set(KINDS)
    keys = {key for document in documents for key in (*document, *document["tree"])}
    sections = ("Document", "TreeRecord")
    assert keys >= {key for name in sections for key in DEFINITIONS[name]["properties"]}


def test_the_schema_is_that_of_the_records():
    assert SCHEMA_FILE.read_text() == schema()


# --- files that are refused, each with one sentence -------------------------------------------


def refusal(text, **settings):
    with pytest.raises(ModelFileError) as caught:
        loads_model(text, **settings)
    sentence = str(caught.value)
    assert sentence.endswith(".") and "\n" not in sentence and len(sentence) < 220
    return sentence


REFUSALS = {
    "random": [
        ("format", "pickle", "its format is not 'softsplit-tree'"),
        ("version", 2, "has version 2, this softsplit reads up to 1; install a newer softsplit"),
        ("version", True, "version True of the model file is no version"),
        ("extra", 1, "the top level of the model file: object contains unknown field 'extra'"),
        ("classes", [], "classes of the model file: expected 'object | null', got 'array'"),
        ("classes.values", ["a"], "classes.values .* expected 'array' of length >= 2"),
        ("classes.values", ["b", "a", "c"], "must be distinct and in order"),
        ("classes.values", ["a", 1, "c"], "do not fit their type 'string'"),
        ("classes.type", "lambda", "classes.type .* invalid enum value 'lambda'"),
        ("classes", {"type": "integer", "values": [-1, 1, 2**63]}, "do not fit one type of int"),
        ("features.low", [0.0], "features.high .* 5 entries where 1 are needed"),
        ("features.low.1", 1e9, "feature 1 of the model file has low above high"),
        ("features.low.0", "0", r"features.low\[0\] .* expected 'float', got 'str'"),
        ("features.kinds.0", "text", r"features.kinds\[0\] .* invalid enum value 'text'"),
        ("features.names", ["a"] * 5, "two features of the model file have the same name"),
        ("features.names.4", "\ud800", rf"features.names\[4\] {HALF}"),
        ("features.importances.0", 2.0, "expected 'float' <= 1.0"),
        ("scaling.kind", "minmax", "a minmax scaling needs the arrays low, span"),
        ("scaling.kind", "os.system", "scaling.kind .* invalid enum value 'os.system'"),
        ("scaling.starts", [0, 1], "must divide its knots into features"),
        ("scaling.starts.1", 1e300, r"scaling.starts\[1\] .* expected 'int', got 'float'"),
        ("scaling.knots.0", 1e20, "knots and ranks of feature 0 do not increase"),
        ("scaling.ranks.0", -1, "do not increase|must lie in"),
        ("tree.depth", 17, "tree.depth of the model file: expected 'int' <= 16"),
        ("tree.depth", 3, "tree.leaves of the model file has 4 entries where 8 are needed"),
        ("tree.steepness", 0, "tree.steepness of the model file: expected 'float' >= 1e-300"),
        ("tree.steepness", 10**400, "tree.steepness of the model file: number out of range"),
        ("tree.branches", [], "tree.branches of the model file has 0 entries where 3 are needed"),
        ("tree.branches.1", {}, r"branches\[1\] .* missing required field 'threshold'"),
        ("tree.branches.0.features", [99], "must be an integer from 0 to 4, not 99"),
        ("tree.branches.0.features", [1, 1], "names a feature twice"),
        ("tree.branches.0.weights", [], "has 0 entries where"),
        ("tree.branches.0.threshold", 5e12, "expected 'float' <= 1000000000000.0"),
        ("tree.leaves", [], "has 0 entries where 4 are needed"),
        ("tree.leaves.0", [0.5, 0.5], "has 2 entries where 3 are needed"),
        ("tree.leaves.0", [0.5, 0.1, 0.1], r"shares of tree.leaves\[0\] .* do not add up to one"),
        ("tree.distributions", [], "has 0 entries where 4 are needed"),
        ("tree.call_costs", [[0, 1, 1]] * 2, "has 2 entries where 3 are needed"),
        ("tree.call_costs", [[0, -1, 1]] * 3, r"call_costs\[0\]\[1\] .* expected 'float' >= 0.0"),
        ("training.parameters", {"__reduce__": 1}, "contains unknown field '__reduce__'"),
        ("training.parameters", {"depth": {"py/object": 1}}, "an object with 'pairs' or with a"),
        ("training.parameters", {"depth": {"pairs": 1}}, "parameters.depth .* a list of pairs"),
        ("training.parameters", {"depth": {"requirement": 1}}, "is no requirement on rates"),
        ("training.parameters", {"class_weight": {"pairs": [[[1], 2]]}}, "no plain value"),
        ("training.parameters", {"penalty": "\udfff"}, f"training.parameters.penalty {HALF}"),
        ("training.parameters", {"depth": 1e308}, "depth of the model file is too large"),
        ("training.omitted", ["x"], "unknown name 'x'"),
        ("training.n_iter", -1, "expected 'int' >= 0"),
        ("software", 3, "software of the model file: expected 'str', got 'int'"),
    ],
    "log-table": [
        ("table.target", 3, "table.target of the model file: expected 'str . null', got 'int'"),
        ("table.more", 1, "table of the model file: object contains unknown field 'more'"),
        ("table.named", None, "table of the model file lacks named"),
        ("table.columns.1", "start", "table of the model file names a column twice"),
        ("table.variables", [], "must be distinct, at least one"),
        ("table.variables.1", ..., "must be distinct, at least one"),
        ("table.variables.0.column", 9, "must be an integer from 0 to 6"),
        ("table.variables.0.kind", "word", r"variables\[0\].kind .* invalid enum value 'word'"),
        ("table.variables.0.middle", "old", "expected 'float', got 'str'"),
        ("table.variables.0.levels", ["a"], "levels of the model file do not fit its kind"),
        ("table.variables.0.rare", "0", "rare of the model file must be checksums"),
        ("table.variables.0.part", "eon", "part of the model file is no part of a date"),
        ("table.variables.0.since_form", "%Y", "since of the model file is of no part of a date"),
        ("table.variables.0.knots", [1, 2], "knots of the model file are not those of a number"),
        ("table.variables.-1.knots", [2, 1], "knots of the model file are not those of a number"),
        ("table.variables.-1.origin", 1.0, "of the model file is no date"),
        ("table.variables.-1.classes", ["a"], "shares of the model file has 0 entries where 1"),
        ("tree.walk.questions", [], "tree.walk.questions of the model file has 0 entries"),
        ("tree.walk.questions.0.sign", "=", r"questions\[0\].sign .* invalid enum value '='"),
        ("tree.walk.questions.0.ranks", 1, "expected 'bool', got 'int'"),
        ("tree.walk.questions.0.coefficients", [], "has 0 entries where"),
        ("tree.walk.rows.0", [1.0], r"walk.rows\[0\] of the model file has 1 entries where 2"),
        ("tree.walk.classes.0", 2, "tree.walk.classes .* integer from 0 to 1, not 2"),
        ("profile.columns", [], "profile.columns of the model file has 0 entries"),
        ("profile.classes", [], "profile.classes of the model file has 0 entries"),
        ("profile.leaves", [], "profile.leaves of the model file has 0 entries"),
        ("profile.columns.0.counts", [], r"profile.columns\[0\] .* does not fit its variable"),
        ("profile.columns.0.edges.1", -1e9, r"profile.columns\[0\].edges .* do not ascend"),
        ("profile.columns.0.missing", -1, "expected 'float' >= 0.0"),
    ],
    "log-points": [
        ("table.variables.1.lookups.0.points", [1], "lookups of the model file do not fit"),
        ("table.variables.1.lookups.0.points.0", 0.5, "expected 'int', got 'float'"),
        ("table.variables.1.lookups.0.edges.0", 1e9, "lookups of the model file do not fit"),
        ("table.variables.1.lookups.0.slopes", [1], "lookups of the model file do not fit"),
        ("table.variables.1.knots", [1], "lookups of the model file do not fit"),
        ("table.variables.2.lookups.0.points", [1, 2], "lookups of the model file do not fit"),
        ("table.variables.1.lookups", [], "table of the model file does not fit the features"),
    ],
    "log-search": [
        ("held_out.scores", [], "held_out.scores of the model file has 0 entries where 2"),
        ("held_out.scores.0", [], "held_out.scores .* do not ascend or fit their rows"),
        ("held_out.scores.0.0", 1.0, "held_out.scores .* do not ascend or fit their rows"),
    ],
    "log-rates": [
        ("rates.0.groups", [], r"rates\[0\].groups .* expected 'array' of length >= 1"),
        ("rates.0.expected", [], r"rates\[0\].expected of the model file has 0 entries"),
        ("rates.0.decided.0", 1.1, r"rates\[0\].decided\[0\] .* expected 'float' <= 1.0"),
        ("tree.monotone.levels", [0], "tree.monotone.levels .* has 1 entries where 2"),
        ("tree.monotone.effects.0.sign", 0, "sign of the model file: invalid enum value 0"),
        ("tree.monotone.effects.0.features", [99], "must be an integer from 0 to"),
    ],
    "log-edited": [
        ("edits.list.0.verb", 1, r"edits.list\[0\].verb .* expected 'str', got 'int'"),
        ("edits.list.0.arguments", [], "arguments .* expected 'object', got 'array'"),
        ("edits.weights.0", [0], r"edits.weights\[0\] .* expected 'array' of length 2, got 1"),
        ("edits.weights.0", [0, 99], "edits.weights .* must be an integer from 0 to 3, not 99"),
        ("edits.thresholds", [3], "edits.thresholds .* must be an integer from 0 to 2, not 3"),
        ("edits.leaves", [4], "edits.leaves .* must be an integer from 0 to 3, not 4"),
    ],
}  # fmt: skip
"""Of each file, a place in it, what is put there (...: its neighbour), and the refusal."""


@pytest.mark.parametrize(
    ("name", "place", "value", "sentence"),
    [(name, *case) for name, cases in REFUSALS.items() for case in cases],
)
def test_malformed_files_are_refused_in_one_sentence(document, name, place, value, sentence):
    changed = copy.deepcopy(document) if name == "random" else stored(name)
    *way, last = [int(key) if key.lstrip("-").isdigit() else key for key in place.split(".")]
    section = changed
    for key in way:
        section = section[key]
    section[last] = section[last - 1] if value is ... else value
    assert re.search(sentence, refusal(json.dumps(changed)))


def test_hostile_text_is_refused_in_one_sentence(document):
    good = json.dumps(document)
    assert "not valid JSON" in refusal(good[:-5])
    assert "not valid JSON" in refusal("")
    assert "nested too deeply" in refusal("[" * 200_000)
    twice = good.replace('"version": 1', '"version": 1, "version": 1')
    assert "the key 'version' twice" in refusal(twice)
    assert "holds NaN" in refusal(good.replace('"steepness": 64.0', '"steepness": NaN'))
    assert "holds -Infinity" in refusal(good.replace('"steepness": 64.0', '"steepness": -Infinity'))
    assert "expected 'float' <= 8e+307" in refusal(
        good.replace('"steepness": 64.0', '"steepness": 1e999')
    )
    assert f"a key {HALF}" in refusal(good.replace('"steepness"', r'"\ud800"'))
    assert "not valid JSON" in refusal(
        good.replace('"steepness": 64.0', '"steepness": ' + "9" * 5000)
    )
    assert "not text in UTF-8" in refusal(b"\xff\xfe{}")
    assert "larger than 100 bytes" in refusal(good, max_bytes=100)
    assert "its format is not" in refusal("[]")
    assert "its format is not" in refusal("null")


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.json"
    with open(path, "wb") as file:
        file.truncate(10 * 2**30)  # sparse: ten gigabytes of nothing
    with pytest.raises(ModelFileError, match="larger than 67108864 bytes; if you trust it"):
        load_model(path)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(junk=JUNK, data=st.data())
def test_no_file_gives_anything_but_a_tree_or_a_sentence(document, junk, data):
    """Anything anywhere in a good file: it loads and predicts, or it is refused."""
    changed = copy.deepcopy(document)
    place = changed
    while True:
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = junk
    text = json.dumps(changed)
    try:
        tree = loads_model(text)
    except ModelFileError as error:
        assert str(error).endswith(".")
        return
    SCHEMA.validate(changed)  # what loads is a file of the documented format
    names = getattr(tree, "feature_names_in_", None)
    X = pd.DataFrame([document["features"]["low"]], columns=names)
    assert np.all(np.isfinite(tree.predict_proba(X)))


# Trees in files of skops.


@examples(15)
@given(**TREES)
def test_skops_keeps_the_tree(seed, depth, kind, labels):
    tree, X = classifier_and_frame(seed, depth, kind, labels)
    data = skops.io.dumps(tree)
    assert set(skops.io.get_untrusted_types(data=data)) <= set(SKOPS_TYPES)
    other = skops.io.loads(data, trusted=list(SKOPS_TYPES))
    np.testing.assert_array_equal(other.predict_proba(X), tree.predict_proba(X))
    assert str(other.explain(X.iloc[0])) == str(tree.explain(X.iloc[0]))


@pytest.mark.parametrize("settings", [{"scale": "minmax"}, {"scale": "quantile"}, {"points": True}])
def test_skops_keeps_what_is_known_of_the_training(settings):
    X, y = load_wine(return_X_y=True, as_frame=True)
    tree = SoftTreeClassifier(n_starts=2, random_state=0, **settings).fit(X, y)
    data = skops.io.dumps(tree)
    assert set(skops.io.get_untrusted_types(data=data)) <= set(SKOPS_TYPES)
    other = skops.io.loads(data, trusted=list(SKOPS_TYPES))
    assert other.solution_.status is tree.solution_.status
    assert other.solution_.kkt.residual == tree.solution_.kkt.residual
    assert [s.objective for s in other.starts_] == [s.objective for s in tree.starts_]
    assert other.get_params() == tree.get_params()


def test_the_trusted_types_exist():
    for name in SKOPS_TYPES:
        module, _, kind = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), kind), type)


def test_a_small_file_cannot_ask_for_much_memory(document):
    n = 1000
    wide = copy.deepcopy(document)
    wide["features"] = {
        "names": None, "low": [0] * n, "high": [1] * n, "scaled_mean": [0] * n,
        "kinds": ["number"] * n, "importances": [0] * n,
    }  # fmt: skip
    wide["scaling"] = {"kind": "minmax", "low": [0] * n, "span": [1] * n}
    wide["tree"]["depth"] = 16
    assert "more than softsplit loads" in refusal(json.dumps(wide))


def test_splits_that_overflow_are_refused():
    tree, _ = random_classifier(3, depth=1, kind="minmax")
    document = json.loads(dumps_model(tree))
    document["scaling"]["span"] = [1e-250] * 5
    document["scaling"]["low"] = [1e299] * 5
    assert "overflow in original units" in refusal(json.dumps(document))
