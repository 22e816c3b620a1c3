"""The memory of a server: the same answers as files, whatever the order and the threads."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap.errors import InputError, PlanError
from dynsnap.predictions import Predictions, write
from dynsnap.stabilizing import CostRule, MarginRule, Stabilizer, update
from tests.messages import naming

CLASSES = ("a", "b", "c")
SHARES = {"a": 0.5, "b": 0.3, "c": 0.2}
RULES = [MarginRule(0.25), CostRule(2, SHARES, old_weight=0.75, new_weight=0.5)]


def scored(rows, generations, *, seed=0):
    return np.random.default_rng(seed).dirichlet([0.7] * 3, size=(generations, rows))


def from_files(scores, rule):
    files = [Predictions(ids=np.arange(len(rows)), classes=CLASSES, scores=rows) for rows in scores]
    deployed = [files[0]]
    for file in files[1:]:
        deployed.append(update(deployed[-1], file, rule))
    return [one.names_of(one.labels).tolist() for one in deployed]


@pytest.mark.parametrize("rule", RULES)
@given(seed=st.integers(0, 1000), order=st.permutations(range(12)))
@settings(max_examples=20)
def test_a_server_answers_as_the_files_do_in_any_order(rule, seed, order):
    scores = scored(12, 4, seed=seed)
    wanted = from_files(scores, rule)
    server = Stabilizer(rule, CLASSES, version="0")
    for place, rows in enumerate(scores):
        if place:
            server.deploy(str(place))
        for chosen in np.array_split(order, 3):
            found = server.labels(chosen, rows[chosen])
            assert found.tolist() == [wanted[place][row] for row in chosen]
            # The same version repeats its answer, whatever the scores are now.
            again = server.labels(chosen, np.roll(rows[chosen], 1, axis=1))
            assert again.tolist() == found.tolist()


@pytest.mark.parametrize("rule", RULES)
def test_threads_get_one_answer_for_an_id_and_a_version(rule):
    scores = scored(3000, 3)
    wanted = from_files(scores, rule)
    server = Stabilizer(rule, CLASSES, version="0")
    server.labels(np.arange(3000), scores[0])
    wrong, start = [], threading.Barrier(8)

    def ask(seed, version):
        draw = np.random.default_rng(seed)
        start.wait()
        for _ in range(60):
            chosen = draw.choice(3000, 40, replace=False)
            found = server.labels(chosen, scores[version][chosen], version=str(version))
            if found.tolist() != [wanted[version][row] for row in chosen]:
                wrong.append(seed)

    for version in (1, 2):
        server.deploy(str(version))
        server.labels(np.arange(3000)[::2], scores[version][::2])
        threads = [threading.Thread(target=ask, args=(seed, version)) for seed in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        server.labels(np.arange(3000), scores[version])
    assert not wrong
    assert len(server) == 3000


def test_scores_of_an_earlier_version_change_no_answer():
    server = Stabilizer(MarginRule(0), CLASSES, version="old")
    server.deploy("new")
    assert server.labels(["x"], [[1, 0, 0]]).tolist() == ["a"]
    assert server.labels(["x"], [[0, 1, 0]], version="old").tolist() == ["a"]
    # An id that only the late answer is known of is decided again by the deployed version.
    assert server.labels(["y"], [[0, 1, 0]], version="old").tolist() == ["b"]
    assert server.labels(["y"], [[0, 0, 1]]).tolist() == ["c"]


def test_the_least_recently_asked_ids_are_forgotten_first():
    server = Stabilizer(MarginRule(1), CLASSES, version="1", capacity=2)
    server.labels(["x", "y"], [[1, 0, 0], [1, 0, 0]])
    server.labels(["x"], [[1, 0, 0]])
    server.labels(["z"], [[1, 0, 0]])
    assert len(server) == 2
    server.deploy("2")
    assert server.labels(["x", "z"], [[0, 1, 0]] * 2).tolist() == ["a", "a"]
    assert server.labels(["y"], [[0, 1, 0]]).tolist() == ["b"]
    many = Stabilizer(MarginRule(1), CLASSES, version="1", capacity=100)
    for start in range(0, 3000, 300):
        ids = np.arange(start, start + 300)
        assert (many.labels(ids, np.eye(3)[ids % 3]) == np.array(CLASSES)[ids % 3]).all()
    assert len(many) == 100 and len(many.predictions()) == 100


@pytest.mark.parametrize("rule", RULES)
def test_a_saved_memory_goes_on_where_it_was(tmp_path, rule):
    scores = scored(40, 3)
    wanted = from_files(scores, rule)
    server = Stabilizer(rule, CLASSES, version="0")
    server.labels(np.arange(40), scores[0])
    server.deploy("1")
    server.labels(np.arange(20), scores[1][:20])
    server.save(tmp_path / "memory.parquet")
    loaded = Stabilizer.load(tmp_path / "memory.parquet", rule, version="1")
    assert len(loaded) == 40
    assert loaded.labels(np.arange(40), scores[1]).tolist() == wanted[1]
    assert loaded.labels(np.arange(20), np.roll(scores[1][:20], 1, 1)).tolist() == wanted[1][:20]


def test_classes_may_grow_with_a_new_model():
    rule = CostRule(2, {"a": 0.4, "b": 0.4, "c": 0.2})
    server = Stabilizer(rule, ["a", "b"], version="1")
    server.labels([1, 2], [[0.9, 0.1], [0.5, 0.5]])
    server.deploy("2", classes=["c", "b", "a"])
    assert server.labels([1, 2], [[0.1, 0.1, 0.8], [0.98, 0.01, 0.01]]).tolist() == ["a", "c"]
    held = server.predictions()
    assert held.classes == ("c", "b", "a")
    np.testing.assert_allclose(held.scores.sum(axis=1), 1, atol=1e-5)


def test_wrong_calls_are_refused_and_nothing_is_remembered():
    server = Stabilizer(MarginRule(), CLASSES, version="1")
    with pytest.raises(InputError, match=naming("scores", r"\(1, 2\)")):
        server.labels(["x"], [[0.5, 0.5]])
    with pytest.raises(InputError, match=naming("ids", "twice")):
        server.labels(["x", "x"], [[1, 0, 0]] * 2)
    with pytest.raises(InputError, match=naming("id", "float")):
        server.labels([0.5], [[1, 0, 0]])
    with pytest.raises(InputError, match=naming("sum", "3")):
        server.labels(["x"], [[1, 1, 1]])
    with pytest.raises(PlanError, match=naming("version", "9")):
        server.labels(["x"], [[1, 0, 0]], version="9")
    with pytest.raises(PlanError, match=naming("version", "1")):
        server.deploy("1")
    with pytest.raises(PlanError, match=naming("capacity", "0")):
        Stabilizer(MarginRule(), CLASSES, version="1", capacity=0)
    assert len(server) == 0
    with pytest.raises(InputError):
        server.predictions()


class Broken:
    def decide(self, classes, old, scores):
        raise RuntimeError("no")


def test_a_rule_that_fails_leaves_no_half_answer():
    server = Stabilizer(Broken(), CLASSES, version="1")
    with pytest.raises(RuntimeError):
        server.labels(["x"], [[1, 0, 0]])
    assert len(server) == 0


@pytest.mark.parametrize("rule", RULES)
@given(seed=st.integers(0, 1000))
@settings(max_examples=15)
def test_the_order_of_classes_changes_no_answer(rule, seed):
    scores, draw = scored(8, 3, seed=seed), np.random.default_rng(seed)
    wanted = from_files(scores, rule)
    server = Stabilizer(rule, CLASSES, version="0")
    ids = np.arange(8)
    server.labels(ids, scores[0])
    for place in (1, 2):
        order = draw.permutation(3)
        server.deploy(str(place), classes=[CLASSES[column] for column in order])
        found = server.labels(ids, scores[place][:, order])
        assert found.tolist() == wanted[place]
    # Late scores have the columns of their own version, also for an id that is new.
    late = server.labels([*ids, 99], [*scores[0], [0.1, 0.2, 0.7]], version="0")
    assert late.tolist() == [*wanted[2], "c"]


@pytest.mark.parametrize("rule", RULES)
def test_a_class_that_goes_is_no_other_class(rule, tmp_path):
    server = Stabilizer(rule, ["a", "b"], version="mon")
    server.labels(["x", "y"], [[0.9, 0.1], [0.1, 0.9]])
    server.deploy("tue", classes=["b", "c"])
    assert server.labels(["x"], [[0.9, 0.1]], version="mon").tolist() == ["a"]
    held = server.predictions()  # nothing is deployed for x any more
    assert held.ids.tolist() == ["y"] and held.names_of(held.labels).tolist() == ["b"]
    server.save(tmp_path / "memory.parquet")
    assert server.labels(["x"], [[0.1, 0.9]]).tolist() == ["c"]
    assert len(server.predictions()) == 2
    # No class of the next model was known: every answer is its own, and the posterior is numbers.
    server.deploy("wed", classes=["p", "q"])
    assert server.labels(["x", "y"], [[0.9, 0.1], [0.2, 0.8]]).tolist() == ["p", "q"]
    assert np.isfinite(server.predictions().scores).all()


def test_late_scores_after_a_restart_change_no_answer(tmp_path):
    server = Stabilizer(MarginRule(0), ["a", "b"], version="mon")
    server.labels(["x"], [[0.9, 0.1]])
    server.deploy("tue")
    server.labels(["y"], [[0.1, 0.9]])
    server.labels(["x"], [[0.9, 0.1]], version="mon")  # so that x was asked last
    server.save(tmp_path / "memory.parquet")
    again = Stabilizer.load(tmp_path / "memory.parquet", MarginRule(0), version="wed")
    assert again.labels(["y"], [[0.9, 0.1]], version="mon").tolist() == ["b"]
    assert again.labels(["y"], [[0.9, 0.1]]).tolist() == ["a"]


@pytest.mark.parametrize(
    ("first", "second"), [(1, "1"), ("1", 1), (1, 2**70), ("a", ""), ("a", "\ud800")]
)
def test_what_no_file_can_hold_is_refused_at_once(tmp_path, first, second):
    server = Stabilizer(MarginRule(0.2), ["a", "b"], version="mon")
    server.labels([first], [[0.9, 0.1]])
    with pytest.raises(InputError, match=naming("[Ii]d")):
        server.labels([second], [[0.9, 0.1]])
    server.save(tmp_path / "memory.parquet")
    again = Stabilizer.load(tmp_path / "memory.parquet", MarginRule(0.2), version="mon")
    assert again.labels([first], [[0.1, 0.9]]).tolist() == ["a"]


@pytest.mark.parametrize(
    ("ids", "scores", "named"),
    [
        ("abc", [[1, 0, 0]] * 3, ["ids", "'abc'"]),
        (7, [[1, 0, 0]], ["ids", "7"]),
        (["a\nb"], [[1, 0, 0]], ["id", "control"]),
        (["a", "b"], [[1, 0, 0], [1]], ["scores"]),
        (["a"], [["x", "y", "z"]], ["scores"]),
        (["a"], [[np.nan, 0.5, 0.5]], ["scores", "nan"]),
        ([], [[1, 0, 0]], ["scores", "0 ids"]),
    ],
)
def test_a_request_that_makes_no_sense_is_one_line(ids, scores, named):
    server = Stabilizer(MarginRule(), CLASSES, version="1")
    with pytest.raises(InputError, match=naming(*named)) as caught:
        server.labels(ids, scores)
    assert "\n" not in str(caught.value)
    assert len(server) == 0


def test_a_request_without_inputs_has_no_answers():
    server = Stabilizer(MarginRule(), CLASSES, version="1")
    assert server.labels([], []).tolist() == []
    assert server.labels([], np.zeros((0, 3))).tolist() == []


@pytest.mark.parametrize("name", ["", "1\n2", None, 5])
def test_names_that_no_file_holds_are_refused_at_once(name):
    with pytest.raises(InputError, match="version"):
        Stabilizer(MarginRule(), CLASSES, version=name)
    server = Stabilizer(MarginRule(), CLASSES, version="1")
    with pytest.raises(InputError, match="version"):
        server.deploy(name)
    for classes in ("abc", None, ["a", ""], []):
        with pytest.raises(InputError, match="class"):
            Stabilizer(MarginRule(), classes, version="1")
    assert server.version == "1"


@pytest.mark.parametrize("rule", [None, 0.2, "margin", MarginRule])
def test_what_cannot_decide_is_refused_before_the_first_request(tmp_path, rule):
    both = Predictions(ids=[1], classes=CLASSES, scores=[[1, 0, 0]])
    write(both, tmp_path / "memory.parquet")
    server = Stabilizer(MarginRule(), CLASSES, version="1")
    calls = [
        lambda: Stabilizer(rule, CLASSES, version="1"),
        lambda: Stabilizer.load(tmp_path / "memory.parquet", rule, version="1"),
        lambda: update(both, both, rule),
    ]
    if rule is not None:  # which stands for the rule so far
        calls.append(lambda: server.deploy("2", rule=rule))
    for call in calls:
        with pytest.raises(PlanError, match=naming("`rule`", "MarginRule")):
            call()
    assert server.version == "1"


def test_labels_alone_are_no_certainty_to_a_cost_rule(tmp_path):
    rng = np.random.default_rng(0)
    old = Predictions(ids=np.arange(40), classes=CLASSES, labels=rng.integers(0, 3, 40))
    new = Predictions(
        ids=np.arange(40), classes=CLASSES, scores=rng.dirichlet([0.3] * 3, 40).astype(float)
    )
    write(old, tmp_path / "old.parquet")
    rule = CostRule(1.5, shares=dict.fromkeys(CLASSES, 1 / 3))
    with pytest.raises(InputError, match=naming("labels", "scores")):
        Stabilizer.load(tmp_path / "old.parquet", rule, version="2")
    confusion = np.full((3, 3), 0.2) + 0.4 * np.eye(3)
    server = Stabilizer.load(tmp_path / "old.parquet", rule, version="2", confusion=confusion)
    made = update(old, new, rule, confusion=confusion)
    answers = server.labels(new.ids, new.scores)
    assert answers.tolist() == made.names_of(made.labels).tolist()
    assert (made.labels != old.labels).any()


def test_labels_alone_stay_labels_alone_under_another_rule(tmp_path):
    old = Predictions(ids=np.arange(4), classes=CLASSES, labels=np.array([0, 1, 2, 0]))
    write(old, tmp_path / "old.parquet")
    server = Stabilizer.load(tmp_path / "old.parquet", MarginRule(0.2), version="2")
    rule = CostRule(1.5, shares=dict.fromkeys(CLASSES, 1 / 3))
    with pytest.raises(PlanError, match=naming("labels", "confusion")):
        server.deploy("3", rule=rule)
    assert server.version == "2"
    server.labels([0], [[0.1, 0.1, 0.8]])
    server.save(tmp_path / "saved.parquet")
    with pytest.raises(InputError, match=naming("labels", "scores")):
        Stabilizer.load(tmp_path / "saved.parquet", rule, version="3")
    again = Stabilizer.load(tmp_path / "saved.parquet", MarginRule(0.2), version="2")
    assert (
        again.labels([0], [[0.9, 0.05, 0.05]]).tolist()
        == server.labels([0], [[0.9, 0.05, 0.05]]).tolist()
    )


@pytest.mark.parametrize("ids", [["7", "8"], [7, 8], ["007", "8"], ["7", "x"]])
@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv.gz", "jsonl", "npz"])
def test_after_a_restart_the_same_ids_are_answered_or_nothing_was_saved(tmp_path, ids, ending):
    server = Stabilizer(MarginRule(0.2), ["a", "b"], version="mon")
    server.labels(ids, [[0.9, 0.1], [0.2, 0.8]])
    file = tmp_path / f"memory.{ending}"
    try:
        server.save(file)
    except InputError as error:
        assert ids == ["7", "8"] and ending in ("csv", "tsv.gz") and ".parquet" in str(error)
        assert not file.exists()
        return
    again = Stabilizer.load(file, MarginRule(0.2), version="mon")
    assert again.labels(ids, [[0.1, 0.9], [0.9, 0.1]]).tolist() == ["a", "b"]
