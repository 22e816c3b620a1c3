"""The files of a new project."""

import json
import tomllib
from pathlib import Path

from dynsnap import _files
from dynsnap.errors import PlanError
from dynsnap.project._settings import FILE, parse_project

_PROJECT = """\
# What `dynsnap retrain` does in this folder. docs/weekly.md explains every setting.
name = {name}

[data]
path = {data}  # a CSV or Parquet file, or a folder that files are added to
id = "id"
time = "time"
label = "label"
cadence = "week"    # day, week or month, or a number of them: "2 weeks"
label_delay = "0 days"  # how long after a row its label is known
test_size = 0.2     # share of the rows that no generation is trained on
test_periods = 4    # held-out rows of so many of the newest weeks are scored

[retrain]
{retrain}

[gate]
rules = "gate.toml"
"""
_METHOD = """\
method = "single-warm"  # adds trees to the deployed model
epochs = 60
retraining = { epochs_share = 0.2 }  # a fifth of the trees of the first training

[model]
name = "lightgbm"
n_jobs = 1"""
_COMMAND = """\
command = {command}
# The program that scores rows with a model, so that the deployed one is scored on new rows, too:
# predict = "python predict.py {{model}} {{rows}} {{predictions}}\""""
_NEWEST = """\
[[rule]]
metric = "accuracy_change"
at_least = -0.02
slice = { column = "rows", value = "newest" }
"""
_ALL = """\
# A new generation is deployed if every rule holds. docs/gate.md has all kinds of rules.
[[rule]]
metric = "accuracy_change"
at_least = -0.01

[[rule]]
metric = "lost"
at_most = 0.05

"""
RULES = _ALL + _NEWEST
# Without `predict`, the deployed generation has not scored the newest rows.
_WITHOUT_PREDICT = (
    _ALL
    + "# With `predict` in project.toml, for the newest week alone:\n"
    + "".join(f"# {line}\n" for line in _NEWEST.splitlines())
)


def write_template(folder: Path, *, data: str, command: str | None) -> list[Path]:
    """Write `project.toml` and `gate.toml` to a folder that has none of them.

    Args:
        folder: The folder; made where it is missing.
        data: Where the rows are.
        command: The program that trains, None for a built-in method.
    """
    files = [folder / FILE, folder / "gate.toml"]
    for file in files:
        if file.exists():
            raise PlanError(f"{file} is there already. Edit it, or name another folder.")
    rules = RULES if command is None else _WITHOUT_PREDICT
    retrain = _METHOD if command is None else _COMMAND.format(command=_text(command))
    text = _PROJECT.format(name=_text(folder.resolve().name), data=_text(data), retrain=retrain)
    parse_project(tomllib.loads(text), folder, text)  # what is refused leaves no files behind
    with _files.together():
        _files.make_folder(folder)
        for file, content in zip(files, (text, rules), strict=True):
            _files.write_text(file, content)
    return files


def _text(value: str) -> str:
    # JSON's texts are texts of TOML, but for one that TOML has no use for.
    return json.dumps(value, ensure_ascii=False).replace("\\/", "/").replace("\x7f", "\\u007f")
