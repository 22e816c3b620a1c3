"""Builders: what was found as one document, with all that terminal and page show of it."""

from dynsnap.report.build.audit import audit_document, audit_json
from dynsnap.report.build.comparison import BREAKDOWNS, comparison_document
from dynsnap.report.build.distill import distill_document, distill_json
from dynsnap.report.build.frontier import frontier_table
from dynsnap.report.build.inputs import Looks
from dynsnap.report.build.size import size_document
from dynsnap.report.build.study import InputDrilldown, StudyFindings, study_document
from dynsnap.report.build.study_charts import Curve
from dynsnap.report.build.study_words import (
    rounds_of,
    said_replicates,
    said_rounds,
    said_windows,
)
from dynsnap.report.build.verdict import verdict_document

__all__ = [
    "BREAKDOWNS",
    "Curve",
    "InputDrilldown",
    "Looks",
    "StudyFindings",
    "audit_document",
    "audit_json",
    "comparison_document",
    "distill_document",
    "distill_json",
    "frontier_table",
    "rounds_of",
    "said_replicates",
    "said_rounds",
    "said_windows",
    "size_document",
    "study_document",
    "verdict_document",
]
