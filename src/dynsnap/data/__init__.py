"""Pools of labelled inputs, streams of generations cut from them, and where they come from."""

from typing import TYPE_CHECKING

from dynsnap._renamed import renamed_functions
from dynsnap.data._arrays import from_arrays, read_npz
from dynsnap.data._cifar import read_cifar10, read_cifar100
from dynsnap.data._dataset import DataSet
from dynsnap.data._digits import digits, digits_growth, digits_stream
from dynsnap.data._excerpts import Excerpt, excerpts, read_excerpts, write_excerpts
from dynsnap.data._flights import read_flights
from dynsnap.data._frame import (
    COLUMNS,
    Column,
    ColumnType,
    Frame,
    FrameType,
    as_frame,
    check_columns,
    columns_in_words,
    frame_type_from_json,
    frame_type_to_json,
    is_frame,
    is_numeric,
)
from dynsnap.data._growth import TRAINING_ROWS, GrowthPlan, LateValidation, grow, training_rows
from dynsnap.data._images import read_images
from dynsnap.data._items import (
    DatasetRows,
    NamedArrays,
    drawing_from,
    is_dataset,
    labels_of,
    read_dataset,
    without_label,
)
from dynsnap.data._new_inputs import NewInputs, read_inputs, reading_options
from dynsnap.data._newsgroups import read_newsgroups
from dynsnap.data._paper import (
    cifar10_growth,
    cifar100_growth,
    newsgroups_growth,
    yahoo_growth,
)
from dynsnap.data._pool import SELECTION_SET, Pool, Stream, check_nested, joined, selection_rows
from dynsnap.data._sources import SOURCES, Source, load, register_source
from dynsnap.data._split import draw_groups, from_arrivals, from_generations, split
from dynsnap.data._tables import read_table
from dynsnap.data._texts import read_ag_news, read_jsonl, read_text_csv, read_yahoo_answers
from dynsnap.data._time import TimeGrowth, Window, Windows, grow_by_time, windows
from dynsnap.data._weights import (
    ClassWeight,
    check_class_weight,
    described_class_weight,
    training_weights,
)

if not TYPE_CHECKING:  # to type checkers the old name is unknown
    __getattr__ = renamed_functions(__name__, {"untouched_rows": "selection_rows"})

__all__ = [
    "COLUMNS",
    "SELECTION_SET",
    "SOURCES",
    "TRAINING_ROWS",
    "ClassWeight",
    "Column",
    "ColumnType",
    "DataSet",
    "DatasetRows",
    "Excerpt",
    "Frame",
    "FrameType",
    "GrowthPlan",
    "LateValidation",
    "NamedArrays",
    "NewInputs",
    "Pool",
    "Source",
    "Stream",
    "TimeGrowth",
    "Window",
    "Windows",
    "as_frame",
    "check_class_weight",
    "check_columns",
    "check_nested",
    "cifar10_growth",
    "cifar100_growth",
    "columns_in_words",
    "described_class_weight",
    "digits",
    "digits_growth",
    "digits_stream",
    "draw_groups",
    "drawing_from",
    "excerpts",
    "frame_type_from_json",
    "frame_type_to_json",
    "from_arrays",
    "from_arrivals",
    "from_generations",
    "grow",
    "grow_by_time",
    "is_dataset",
    "is_frame",
    "is_numeric",
    "joined",
    "labels_of",
    "load",
    "newsgroups_growth",
    "read_ag_news",
    "read_cifar10",
    "read_cifar100",
    "read_dataset",
    "read_excerpts",
    "read_flights",
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
    "training_weights",
    "windows",
    "without_label",
    "write_excerpts",
    "yahoo_growth",
]
