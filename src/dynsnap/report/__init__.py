"""What was found, for people: built once as a document, rendered to every format.

`build` makes a `Document` of results, `render` writes it: terminal, Markdown, page, JUnit XML;
figures as SVG and PNG.
"""

from dynsnap.report import document, figures, notebook
from dynsnap.report.build.audit import audit_document, audit_json
from dynsnap.report.build.comparison import (
    BREAKDOWNS,
    SECTIONS,
    comparison_document,
    register_section,
)
from dynsnap.report.build.distill import distill_document, distill_json
from dynsnap.report.build.frontier import frontier_table
from dynsnap.report.build.history import HistoryFindings, RetrainRow, history_document
from dynsnap.report.build.inputs import Excerpts
from dynsnap.report.build.size import bound_notes, size_document
from dynsnap.report.build.study import InputDrilldown, StudyFindings, study_document
from dynsnap.report.build.study_charts import Curve
from dynsnap.report.build.study_words import (
    preferred,
    rounds_of,
    said_replicates,
    said_rounds,
    said_windows,
)
from dynsnap.report.build.verdict import verdict_document
from dynsnap.report.build.watch import watch_document
from dynsnap.report.document import Document, figures_of
from dynsnap.report.render.html import MOST_BYTES, to_html
from dynsnap.report.render.junit import to_junit
from dynsnap.report.render.markdown import markdown_table, to_markdown
from dynsnap.report.render.png import check_png, to_png
from dynsnap.report.render.svg import to_svg
from dynsnap.report.render.terminal import PIPE_WIDTH, to_terminal
from dynsnap.report.words import kappa

__all__ = [
    "BREAKDOWNS",
    "MOST_BYTES",
    "PIPE_WIDTH",
    "SECTIONS",
    "Curve",
    "Document",
    "Excerpts",
    "HistoryFindings",
    "InputDrilldown",
    "RetrainRow",
    "StudyFindings",
    "audit_document",
    "audit_json",
    "bound_notes",
    "check_png",
    "comparison_document",
    "distill_document",
    "distill_json",
    "document",
    "figures",
    "figures_of",
    "frontier_table",
    "history_document",
    "kappa",
    "markdown_table",
    "notebook",
    "preferred",
    "register_section",
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
    "watch_document",
]
