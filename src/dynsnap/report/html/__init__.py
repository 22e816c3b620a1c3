"""Pages that a reviewer opens: one self-contained HTML file each."""

from dynsnap.report.html._comparison import comparison_page
from dynsnap.report.html._gate import gate_page
from dynsnap.report.html._page import MOST_BYTES, Page

__all__ = ["MOST_BYTES", "Page", "comparison_page", "gate_page"]
