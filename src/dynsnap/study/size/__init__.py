"""How many members are enough, estimated from the rounds of a run."""

from dynsnap.study.size._draws import Draw
from dynsnap.study.size._estimate import estimate_sizes, stored_members
from dynsnap.study.size._laws import LAWS, Law, LawName
from dynsnap.study.size._results import SizeCurve, SizePoint, Sizes, Trial, Twins

__all__ = [
    "LAWS",
    "Draw",
    "Law",
    "LawName",
    "SizeCurve",
    "SizePoint",
    "Sizes",
    "Trial",
    "Twins",
    "estimate_sizes",
    "stored_members",
]
