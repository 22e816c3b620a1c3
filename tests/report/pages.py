"""Reports as pages, with the figures on them."""

from dataclasses import dataclass

from dynsnap import report


@dataclass(frozen=True)
class Page:
    html: str
    figures: tuple[report.figures.Figure, ...]


def page_of(document):
    return Page(report.to_html(document), report.figures_of(document))


def comparison_page(found, **more):
    return page_of(report.comparison_document(found, **more))


def gate_page(verdict, found, **more):
    return page_of(report.verdict_document(verdict, found, **more))


def study_page(findings):
    return page_of(report.study_document(findings))


def history_page(found):
    return page_of(report.history_document(found))


def watch_page(found):
    return page_of(report.watch_document(found))
