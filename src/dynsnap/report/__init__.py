"""What was found, for people: text for the terminal, Markdown, JUnit XML, pages, figures."""

from dynsnap.report import figures, html
from dynsnap.report._audit import audit_json, audit_report
from dynsnap.report._blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    Heading,
    Paragraph,
    Table,
    Tone,
)
from dynsnap.report._comparison import BREAKDOWNS, comparison_report
from dynsnap.report._distilled import distilled_json, distilled_report
from dynsnap.report._gate import gate_report, junit
from dynsnap.report._markdown import markdown
from dynsnap.report._size import size_report
from dynsnap.report._study import study_report
from dynsnap.report._study_words import (
    kappa,
    rounds_of,
    said_replicates,
    said_rounds,
    said_windows,
)
from dynsnap.report._text import PIPE_WIDTH, text

__all__ = [
    "BREAKDOWNS",
    "PIPE_WIDTH",
    "Block",
    "Bullets",
    "Cell",
    "Column",
    "Document",
    "Heading",
    "Paragraph",
    "Table",
    "Tone",
    "audit_json",
    "audit_report",
    "comparison_report",
    "distilled_json",
    "distilled_report",
    "figures",
    "gate_report",
    "html",
    "junit",
    "kappa",
    "markdown",
    "rounds_of",
    "said_replicates",
    "said_rounds",
    "said_windows",
    "size_report",
    "study_report",
    "text",
]
