"""What was found, for people: built once as a document, rendered to every format.

`build` makes a `Document` of results, `render` writes it: terminal, Markdown, page, JUnit XML;
figures as SVG and PNG.
"""

from dynsnap.report import document, figures
from dynsnap.report.build import (
    BREAKDOWNS,
    Curve,
    InputDrilldown,
    Looks,
    StudyFindings,
    audit_document,
    audit_json,
    comparison_document,
    distill_document,
    distill_json,
    frontier_table,
    rounds_of,
    said_replicates,
    said_rounds,
    said_windows,
    size_document,
    study_document,
    verdict_document,
)
from dynsnap.report.document import Document, figures_of
from dynsnap.report.render import (
    MOST_BYTES,
    PIPE_WIDTH,
    check_png,
    markdown_table,
    to_html,
    to_junit,
    to_markdown,
    to_png,
    to_svg,
    to_terminal,
)
from dynsnap.report.words import kappa

__all__ = [
    "BREAKDOWNS",
    "MOST_BYTES",
    "PIPE_WIDTH",
    "Curve",
    "Document",
    "InputDrilldown",
    "Looks",
    "StudyFindings",
    "audit_document",
    "audit_json",
    "check_png",
    "comparison_document",
    "distill_document",
    "distill_json",
    "document",
    "figures",
    "figures_of",
    "frontier_table",
    "kappa",
    "markdown_table",
    "rounds_of",
    "said_replicates",
    "said_rounds",
    "said_windows",
    "size_document",
    "study_document",
    "to_html",
    "to_junit",
    "to_markdown",
    "to_png",
    "to_svg",
    "to_terminal",
    "verdict_document",
]
