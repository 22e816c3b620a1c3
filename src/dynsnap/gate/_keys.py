"""The keys of a [[rule]] table: those of every rule, and those that code has added."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from dynsnap._registry import Registry
from dynsnap.errors import PlanError

if TYPE_CHECKING:
    from dynsnap.gate._judge import RuleOutcome

Kinds: TypeAlias = tuple[type, ...]

OWN: Mapping[str, Kinds] = {
    "metric": (str,),
    "at_least": (float, int),
    "at_most": (float, int),
    "on": (str,),
    "confidence": (float, int),
    "class": (str, int),
    "slice": (dict,),
    "min_count": (int,),
    "name": (str,),
    "allow_odd": (bool,),
}
_WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    dict: "a table",
    bool: "true or false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleKey:
    """A further key of rules.

    Attributes:
        name: The key in TOML, and in `Rule(keys={...})`.
        kinds: The types that its value may have.
        judge: Gives the outcome of a rule that has the key, from the outcome without it and the
            value. It is called for what was judged, not for parts that were left out.
        check: Raises PlanError for a value that makes no sense.
    """

    name: str
    kinds: Kinds
    judge: "Callable[[RuleOutcome, Any], RuleOutcome]"
    check: Callable[[Any], None] = lambda value: None


RULE_KEYS: Registry[RuleKey] = Registry("rule key", {})


def register_rule_key(key: RuleKey) -> None:
    """Make a key known in this process: rules in files and in code may then have it."""
    if key.name in OWN:
        raise PlanError(f"The rule key {key.name!r} is part of dynsnap. Choose another name.")
    RULE_KEYS.add(key.name, key)


def check_kind(name: str, value: Any, kinds: Kinds, where: str) -> None:
    """Raise PlanError unless the value of a key is of one of its types."""
    # TOML's true is a Python int, which only a switch may be.
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        known = _WORDS.get(kinds[0], kinds[0].__name__)
        raise PlanError(f"`{name}` of {where} must be {known}, got {value!r}.")
