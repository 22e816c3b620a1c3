"""Pages that a reviewer opens: one self-contained HTML file each."""

from dynsnap.report.html._comparison import SECTIONS, comparison_page, register_section
from dynsnap.report.html._gate import gate_page
from dynsnap.report.html._looks import Looks
from dynsnap.report.html._page import MOST_BYTES, Page
from dynsnap.report.html._parts import Section
from dynsnap.report.html._study import Closer, StudyFindings, study_page
from dynsnap.report.html._study_figures import Curve

__all__ = [
    "MOST_BYTES",
    "SECTIONS",
    "Closer",
    "Curve",
    "Looks",
    "Page",
    "Section",
    "StudyFindings",
    "comparison_page",
    "gate_page",
    "register_section",
    "study_page",
]
