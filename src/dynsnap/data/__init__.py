"""Pools of labelled inputs, streams of generations cut from them, and where they come from."""

from dynsnap.data._arrays import from_arrays, read_npz
from dynsnap.data._dataset import DataSet
from dynsnap.data._digits import digits, digits_growth, digits_stream
from dynsnap.data._growth import GrowthPlan, LateValidation, grow
from dynsnap.data._paper import cifar10_growth, cifar100_growth, yahoo_growth
from dynsnap.data._pool import Pool, Stream, check_nested
from dynsnap.data._split import from_arrivals, from_generations, split

__all__ = [
    "DataSet",
    "GrowthPlan",
    "LateValidation",
    "Pool",
    "Stream",
    "check_nested",
    "cifar10_growth",
    "cifar100_growth",
    "digits",
    "digits_growth",
    "digits_stream",
    "from_arrays",
    "from_arrivals",
    "from_generations",
    "grow",
    "read_npz",
    "split",
    "yahoo_growth",
]
