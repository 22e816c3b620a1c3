"""Two generations of each task as files, with truth, slices and weights."""

import csv

import numpy as np

ROWS = 60
COMMANDS = {
    "binary": ["--task", "binary", "--threshold", "0.5", "--threshold", "0.4"],
    "multilabel": ["--task", "multilabel"],
    "ranking": ["--task", "ranking", "--k", "2"],
    "regression": ["--task", "regression", "--tolerance", "0.5"],
    "graded": ["--task", "graded"],
    "repeated": ["--task", "graded"],
}
SETTINGS = {
    "binary": {"task": "binary", "threshold": [0.5, 0.4]},
    "multilabel": {"task": "multilabel"},
    "ranking": {"task": "ranking", "k": 2},
    "regression": {"task": "regression", "tolerance": 0.5},
    "graded": {"task": "graded"},
    "repeated": {"task": "graded"},
}


def write(path, rows):
    """A CSV file of dictionaries."""
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def rows_of(kind, seed):
    """The rows of a generation; inputs, truth, regions and weights are those of all others."""
    same, rng = np.random.default_rng(0), np.random.default_rng(seed)
    found = []
    for number in range(ROWS):
        row = {
            "id": number,
            "region": str(same.choice(["north", "south"])),
            "weight": int(same.integers(1, 4)),
        }
        chance = float(same.random())
        truth = [label for label in "abc" if same.random() < 0.5]
        if kind == "binary":
            score = float(np.clip(chance + 0.2 * rng.normal(), 0, 1))
            row |= {"truth": "yes" if chance > 0.5 else "no", "score": score}
        elif kind in ("multilabel", "ranking"):
            said = [label for label in "abc" if (label in truth) != (rng.random() < 0.2)]
            row |= {
                "truth": "|".join(truth) or "[]",
                "label": "|".join(said),
            }  # no label is a truth
        elif kind == "regression":
            row |= {"truth": chance, "prediction": chance + 0.4 * float(rng.normal())}
        elif kind == "graded":
            row["correct"] = int(rng.random() < chance)
        else:
            found += [{**row, "correct": int(rng.random() < chance)} for _ in range(3)]
            continue
        found.append(row)
    return found


def pair(folder, kind, *, weights=True):
    """Both files; the newer one in another order."""
    made = []
    for name, seed in (("old", 1), ("new", 2)):
        rows = rows_of(kind, seed)
        if not weights:
            rows = [{key: row[key] for key in row if key != "weight"} for row in rows]
        made.append(write(folder / f"{kind}-{name}.csv", rows if name == "old" else rows[::-1]))
    return made
