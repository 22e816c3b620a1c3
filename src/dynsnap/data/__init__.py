"""Pools of labelled inputs, streams of generations cut from them, and where they come from."""

from typing import TYPE_CHECKING

from dynsnap._renamed import renamed_functions
from dynsnap.data._arrays import from_arrays, read_npz
from dynsnap.data._cifar import read_cifar10, read_cifar100
from dynsnap.data._dataset import DataSet
from dynsnap.data._digits import digits, digits_growth, digits_stream
from dynsnap.data._excerpts import Excerpt, excerpts, read_excerpts, write_excerpts
from dynsnap.data._growth import GrowthPlan, LateValidation, grow
from dynsnap.data._images import read_images
from dynsnap.data._jsonl import read_jsonl
from dynsnap.data._new_inputs import NewInputs, read_inputs, reading_options
from dynsnap.data._newsgroups import read_newsgroups
from dynsnap.data._paper import (
    cifar10_growth,
    cifar100_growth,
    newsgroups_growth,
    yahoo_growth,
)
from dynsnap.data._pool import Pool, Stream, check_nested
from dynsnap.data._selection_holdout import SELECTION_SET, selection_rows
from dynsnap.data._sources import SOURCES, Source, load, register_source
from dynsnap.data._split import from_arrivals, from_generations, split
from dynsnap.data._tables import read_table
from dynsnap.data._text_csv import read_ag_news, read_text_csv, read_yahoo_answers
from dynsnap.data._training_rows import TRAINING_ROWS, training_rows

if not TYPE_CHECKING:  # to type checkers the old name is unknown
    __getattr__ = renamed_functions(__name__, {"untouched_rows": "selection_rows"})

__all__ = [
    "SELECTION_SET",
    "SOURCES",
    "TRAINING_ROWS",
    "DataSet",
    "Excerpt",
    "GrowthPlan",
    "LateValidation",
    "NewInputs",
    "Pool",
    "Source",
    "Stream",
    "check_nested",
    "cifar10_growth",
    "cifar100_growth",
    "digits",
    "digits_growth",
    "digits_stream",
    "excerpts",
    "from_arrays",
    "from_arrivals",
    "from_generations",
    "grow",
    "load",
    "newsgroups_growth",
    "read_ag_news",
    "read_cifar10",
    "read_cifar100",
    "read_excerpts",
    "read_images",
    "read_inputs",
    "read_jsonl",
    "read_newsgroups",
    "read_npz",
    "read_table",
    "read_text_csv",
    "read_yahoo_answers",
    "reading_options",
    "register_source",
    "selection_rows",
    "split",
    "training_rows",
    "write_excerpts",
    "yahoo_growth",
]
