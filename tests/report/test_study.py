from dynsnap import report
from dynsnap.study import Row, SweepRow


def rows(method, values, *, cost=1.0, combinations=("majority", "average")):
    return [
        Row(
            method=method,
            combination=how,
            metric=metric,
            value=value,
            low=value - 0.01,
            high=value + 0.01,
            cost=cost,
        )
        for how in combinations
        for metric, value in zip(
            ("accuracy", "consistency", "correct_consistency"), values, strict=True
        )
    ]


TABLE = [
    *rows("singlebase", (0.85, 0.86, 0.80)),
    *rows("dynsnap-cyc", (0.88, 0.93, 0.86), cost=3.0, combinations=("majority",)),
    *rows("dynsnap-cyc", (0.89, 0.94, 0.87), cost=3.0, combinations=("average",)),
    *rows("noise-floor", (0.84, 0.87, 0.79)),
    *rows("never-retrain", (0.80, 1.0, 0.80), cost=1 / 3),
]


def shown(**more):
    return report.text(report.study_report(TABLE, title="A study", **more))


def test_a_study_shows_the_papers_metrics_in_percent_with_intervals_and_cost():
    lines = shown().splitlines()
    (line,) = (line for line in lines if line.startswith("dynsnap-cyc") and "MV" in line)
    assert line.split() == [
        *("dynsnap-cyc", "MV", "3.0"),
        *("88.0", "87.0–89.0", "93.0", "92.0–94.0", "86.0", "85.0–87.0"),
    ]


def test_combinations_that_agree_are_one_line():
    lines = [line for line in shown().splitlines() if line.startswith("singlebase")]
    assert lines[0].split()[:3] == ["singlebase", "all", "1.0"]


def test_the_longest_bar_belongs_to_the_most_consistent():
    document = report.study_report(TABLE, title="A study")
    picture = next(
        block for block in document if isinstance(block, report.Table) and "CON" in block.title
    )
    lengths = {row[0].text: len(row[2].text) for row in picture.rows}
    assert max(lengths, key=lengths.__getitem__) == "never-retrain"
    assert lengths["dynsnap-cyc"] > lengths["singlebase"]


def test_what_is_surely_better_than_single_base_is_marked():
    document = report.study_report(TABLE, title="A study")
    main = next(block for block in document if isinstance(block, report.Table))
    tones = {row[0].text: row[7].tone for row in main.rows if row[0].text}
    assert tones["dynsnap-cyc"] == "good"
    assert tones["singlebase"] == "plain"


def test_the_noise_floor_and_never_retraining_are_explained():
    text = shown()
    assert "already labels 13.0 % of the inputs" in " ".join(text.split())
    assert "never learns" in text


def test_sweeps_show_their_points_with_cost():
    points = [
        SweepRow(sweep="m", over="members", point=point, row=row)
        for point, value in (("1", 0.5), ("20", 0.6))
        for row in rows("x", (value, value, value), combinations=("average",), cost=4.5)
    ]
    text = shown(sweeps=points)
    assert "Sweep: m" in text
    (line,) = (line for line in text.splitlines() if line.startswith("20"))
    assert line.split()[1:3] == ["4.5", "60.0"]


def test_a_report_of_a_study_can_be_markdown_too():
    assert "| dynsnap-cyc" in report.markdown(report.study_report(TABLE, title="A study"))
