"""A small project with a program that trains, in a folder of its own."""

import sys
from pathlib import Path

from dynsnap import project as projects

# Starts in milliseconds: no library, and rows in CSV. The "model" is a threshold.
TRAIN = """\
import csv, sys
train, evaluate, model, predictions, deployed = sys.argv[1:6]
rows = list(csv.DictReader(open(train)))
late = [float(row["x"]) for row in rows if row["label"] == "late"]
early = [float(row["x"]) for row in rows if row["label"] == "early"]
edge = (sum(late) / len(late) + sum(early) / len(early)) / 2
open(model, "w").write(repr(edge))
def score(edge):
    with open(predictions, "w") as out:
        out.write("id,label\\n")
        for row in csv.DictReader(open(evaluate)):
            assert "label" not in row
            out.write(f"{row['id']},{'late' if float(row['x']) > edge else 'early'}\\n")
score(edge)
"""
PREDICT = """\
import csv, sys
model, rows, predictions = sys.argv[1:4]
edge = float(open(model).read())
with open(predictions, "w") as out:
    out.write("id,label\\n")
    for row in csv.DictReader(open(rows)):
        out.write(f"{row['id']},{'late' if float(row['x']) > edge else 'early'}\\n")
"""
PYTHON = f'"{sys.executable}" -I -S'
COMMANDS = f'''\
command = """{PYTHON} train.py {{train}} {{evaluate}} {{model}} {{predictions}} "{{deployed}}" """
predict = """{PYTHON} predict.py {{model}} {{rows}} {{predictions}}"""
model_file = "edge.txt"
predictions_file = "predictions.csv"
rows_format = "csv"
'''
RULES = '[[rule]]\nmetric = "lost"\nat_most = 0.5\n'
NEVER = '[[rule]]\nmetric = "accuracy"\nat_least = 0.9999\n'
OPEN = '[[rule]]\nmetric = "accuracy_change"\nat_least = 0.0\non = "bound"\nunresolved = "report"\n'
# The newest week by then: 2024-01-01, and so on.
WEEKS = ("2024-01-08", "2024-01-15", "2024-01-22", "2024-01-29")
PERIODS = ("2024-01-01", "2024-01-08", "2024-01-15", "2024-01-22")


def week(folder, number, *, rows=60, shift=0.0):
    """A file with the rows of one week, deterministic and not sorted by time."""
    lines = ["id,time,x,label"]
    for at in range(rows):
        day = 1 + 7 * number + (at * 5) % 7
        x = ((at * 37 + number * 11) % 100 - 50) / 25
        label = "late" if x > shift + ((at * 13) % 7 - 3) / 10 else "early"
        lines.append(f"w{number}-{at},2024-01-{day:02}T{at % 24:02}:00:00,{x},{label}")
    folder.mkdir(exist_ok=True)
    (folder / f"week-{number}.csv").write_text("\n".join(lines) + "\n")


def make(folder, *, weeks=3, retrain=COMMANDS, rules=RULES, data="", more=""):
    """A project with some weeks of rows."""
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "predict.py").write_text(PREDICT)
    (folder / "gate.toml").write_text(rules)
    (folder / "project.toml").write_text(
        f'name = "small"\n[data]\npath = "data"\ntest_size = 0.4\n{data}\n[retrain]\n{retrain}\n'
        f"[gate]\nmin_count = 1\nresamples = 100\n{more}"
    )
    for number in range(weeks):
        week(folder / "data", number, shift=0.1 * number)
    return folder


def retrain(folder, until, **more):
    """One retrain, in this process."""
    loop = projects.Retrain(
        project=projects.read_project(Path(folder)), until=projects.parse_until(until), **more
    )
    return loop.run()


def deployed(folder):
    """The deployed generation, after all of its files were checked."""
    registry = projects.FolderRegistry(Path(folder) / "registry")
    pointer = registry.deployed()
    if pointer is None:
        return None
    return registry.checked(pointer.generation)[0].number
