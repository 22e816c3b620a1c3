"""What one ensemble of a study predicted: its name in an address and in a run folder.

An address is `FOLDER::METHOD/COMBINATION/gN/rN`: generation N (from 1) and replicate N (from 0) of
a method. `late/` in front of the method stands for the inputs of new classes, `twin/` for the
learner that measures the noise floor.
"""

import re
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal, Self, TypeAlias, get_args

Kind: TypeAlias = Literal["test", "late", "twin"]
Inputs: TypeAlias = Literal["test", "late"]

KINDS: tuple[Kind, ...] = get_args(Kind)
FORM = "FOLDER::METHOD/COMBINATION/gN/rN"
MARK = "::"

_NUMBER = r"(0|[1-9][0-9]{0,8})"
_KEY = re.compile(rf"(?:(late|twin)/)?([\w.=-]+)/([a-z_]+)/g{_NUMBER}/r{_NUMBER}")
_FILE = re.compile(rf"([\w.=-]+)-([a-z_]+)-g{_NUMBER}(?:-r{_NUMBER})?\.parquet")


@dataclass(frozen=True, slots=True)
class PredictionKey:
    """Which predictions of a study.

    Attributes:
        kind: "test" for the test inputs, "late" for inputs of classes that are new in a later
            generation, "twin" for the test inputs by the learner that measures the noise floor.
        method: The method.
        combination: How its members were combined.
        generation: The generation, from 1.
        replicate: The replicate, from 0.

    Example:
        >>> key = PredictionKey.parse("dynsnap-cyc/average/g2/r0")
        >>> key.method, key.generation
        ('dynsnap-cyc', 2)
        >>> str(key)
        'dynsnap-cyc/average/g2/r0'
    """

    kind: Kind
    method: str
    combination: str
    generation: int
    replicate: int

    def __str__(self) -> str:
        return f"late/{self.column}" if self.kind == "late" else self.column

    def __lt__(self, other: "PredictionKey") -> bool:
        return self._order < other._order

    @property
    def _order(self) -> tuple[int, str, str, int, int]:
        """Test inputs come first: lists and examples begin with what is looked for most."""
        numbers = self.generation, self.replicate
        return (KINDS.index(self.kind), self.method, self.combination, *numbers)

    @property
    def column(self) -> str:
        """The key without `late/`: new classes and test inputs share a column of labels."""
        own = f"{self.method}/{self.combination}/g{self.generation}/r{self.replicate}"
        return f"twin/{own}" if self.kind == "twin" else own

    @property
    def inputs(self) -> Inputs:
        """The inputs that the predictions are of."""
        return "late" if self.kind == "late" else "test"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The key that a text names, None where it has another form."""
        if (found := _KEY.fullmatch(text)) is None:
            return None
        prefix, method, combination, generation, replicate = found.groups()
        kind: Kind = "late" if prefix == "late" else "twin" if prefix == "twin" else "test"
        return cls(kind, method, combination, int(generation), int(replicate))

    @classmethod
    def of_file(cls, file: PurePath, kind: Kind) -> Self | None:
        """The key of a file in the predictions of a run folder, None for other files."""
        if (found := _FILE.fullmatch(file.name)) is None:
            return None
        method, combination, generation, replicate = found.groups()
        return cls(kind, method, combination, int(generation), int(replicate or 0))


def split_address(place: str | Path) -> tuple[Path, str] | None:
    """The folder and the rest of an address, None for any other place.

    Example:
        >>> split_address("results/mine::singlebase/average/g1/r0")
        (PosixPath('results/mine'), 'singlebase/average/g1/r0')
        >>> split_address("old.parquet")
    """
    folder, mark, rest = str(place).rpartition(MARK)
    if not mark or not folder or Path(place).exists():
        return None
    return Path(folder), rest


def name_of(place: str | Path) -> str:
    """What distinguishes an address from most others: the method and the generation.

    Example:
        >>> name_of("results/mine::singlebase/average/g1/r0")
        'singlebase g1'
        >>> name_of("results/mine.parquet")
        'mine'
    """
    found = split_address(place)
    key = None if found is None else PredictionKey.parse(found[1])
    return Path(place).stem if key is None else f"{key.method} g{key.generation}"
