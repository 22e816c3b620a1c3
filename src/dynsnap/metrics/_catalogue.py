"""Every metric by name: what it is called, what it needs, and which way is better.

Tables, rules, JSON and pages all speak these names, so a metric is spelled once.
"""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dynsnap.errors import PlanError, did_you_mean

Direction: TypeAlias = Literal["higher", "lower", "neither"]
Scope: TypeAlias = Literal["generation", "pair", "many"]
Need: TypeAlias = Literal["truth", "scores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One entry of the catalogue.

    Attributes:
        name: The word in rules, JSON, tables and CSV files.
        symbol: The paper's symbol, or the field's usual one.
        meaning: One sentence for a reader who has not seen the metric before.
        direction: Which way is better; "neither" where it depends.
        scope: Whether it is about one generation, an ordered pair, or all generations at once.
        needs: What the predictions must hold beside labels.
    """

    name: str
    symbol: str
    meaning: str
    direction: Direction
    scope: Scope
    needs: frozenset[Need] = frozenset()
