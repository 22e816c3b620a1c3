"""Rules from a TOML file or from the command line."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from dynsnap._untrusted import read_toml
from dynsnap.errors import FileError, PlanError, did_you_mean
from dynsnap.gate._rule import EVERY, OWN, RULE_KEYS, Rule, check_kind, is_multiple
from dynsnap.predictions import check_columns_table


def read_columns(path: str | Path) -> dict[str, Any]:
    """The table `[columns]` of a file of rules: what the columns of predictions are called.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "gate.toml"
        >>> _ = file.write_text('[columns]\\nid = "image"\\n')
        >>> read_columns(file)
        {'id': 'image'}
    """
    found = _document(Path(path)).get("columns", {})
    return check_columns_table(found, f"[columns] of {path}")


def read_rules(path: str | Path) -> tuple[Rule, ...]:
    """The rules of a TOML file: one `[[rule]]` table each.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "gate.toml"
        >>> _ = file.write_text('''
        ... [[rule]]
        ... metric = "correct_consistency"
        ... at_least = 0.85
        ... ''')
        >>> read_rules(file)[0].title
        'correct_consistency ≥ 0.85'
    """
    path = Path(path)
    document = _document(path)
    _refuse_unknown(document, {"rule", "columns"}, str(path))
    tables = document.get("rule", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise PlanError(f"The rules {path} must be tables: write each under a [[rule]] heading.")
    if not tables:
        raise PlanError(f"The rules {path} hold no rule. Write one under a [[rule]] heading.")
    return tuple(_rule(table, f"rule {number} in {path}") for number, table in enumerate(tables, 1))


def _document(path: Path) -> dict[str, Any]:
    try:
        return read_toml(path)
    except OSError as error:
        reason = error.strerror or error
        raise FileError(f"Cannot read the rules {path}: {reason}. Name a TOML file.") from error
    except ValueError as error:
        raise PlanError(f"The rules {path} are not valid TOML: {error}.") from error


def inline_rule(
    text: str,
    *,
    side: Literal["at_least", "at_most"],
    allow_odd: bool = False,
    confidence: float | None = None,
) -> Rule:
    """A rule written as `metric=number`, or `metric[class]=number`; the class * is every class.

    The number may be a multiple of the noise floor, such as `1.2 x noise_floor`.

    Args:
        text: The rule.
        side: What the number is to the metric.
        allow_odd: Take a rule that nothing can fail, or that asks for a worse value.
        confidence: Judge the bound at this level, not the value.

    Example:
        >>> inline_rule("lost=0.02", side="at_most").title
        'lost ≤ 0.02'
        >>> inline_rule("recall[frog]=0.8", side="at_least").title
        'recall ≥ 0.8 in class frog'
    """
    option, example = (
        ("--at-least", "correct_consistency=0.85")
        if side == "at_least"
        else ("--at-most", "lost=0.02")
    )
    name, _, number = text.rpartition("=")  # a class may have the sign in its name
    name, opened, rest = name.strip().partition("[")
    threshold: float | str
    try:
        if opened and not rest.endswith("]"):
            raise ValueError
        threshold = float(number)
    except ValueError:
        if not is_multiple(number) or (opened and not rest.endswith("]")):
            raise PlanError(
                f"{option} takes metric=number, such as {option} {example}, metric[class]=number, "
                "or a multiple of the noise floor, such as --at-most 'lost=1.2 x noise_floor', "
                f"got {text!r}."
            ) from None
        threshold = number
    fields: dict[str, Any] = {"metric": name, side: threshold, "allow_odd": allow_odd}
    fields["class_name"] = rest[:-1] if opened else None
    if confidence is not None:
        fields |= {"on": "bound", "confidence": confidence}
    return Rule(**fields)


def _rule(table: Mapping[str, Any], where: str) -> Rule:
    _refuse_unknown(table, [*OWN, *RULE_KEYS], where)
    for key in table.keys() & OWN.keys():
        check_kind(key, table[key], OWN[key], where)
    if "metric" not in table:
        raise PlanError(f'{where} names no metric. Add one, such as metric = "lost".')
    about_bounds = [key for key in ("confidence", "unresolved", "correction") if key in table]
    if about_bounds and table.get("on") == "value":
        raise PlanError(
            f'`{about_bounds[0]}` of {where} has no effect with on = "value". Drop one of the two.'
        )
    fields = {key: table[key] for key in table.keys() & OWN.keys() - {"class", "slice"}}
    fields["keys"] = {key: value for key, value in table.items() if key not in OWN}
    # To ask for a confidence is to ask for the interval.
    fields.setdefault("on", "bound" if about_bounds else "value")
    if "class" in table:
        fields["class_name"] = str(table["class"])
    if "slice" in table:
        fields["slice"] = _slice(table["slice"], where)
    try:
        return Rule(**fields)
    except PlanError as error:
        raise PlanError(f"In {where}: {error}") from error


def _slice(table: Mapping[str, Any], where: str) -> tuple[str, str]:
    _refuse_unknown(table, {"column", "value"}, f"the slice of {where}")
    column, value = table.get("column"), table.get("value", EVERY)
    if not isinstance(column, str) or not isinstance(value, str | int) or isinstance(value, bool):
        raise PlanError(
            f'The slice of {where} must be like {{column = "region", value = "north"}}, '
            f"got {dict(table)!r}."
        )
    return column, str(value)


def _refuse_unknown(table: Mapping[str, Any], known: Collection[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise PlanError(f"Unknown key {key!r} in {where}. {did_you_mean(key, known)}")
