"""Renderers: a report as terminal text, Markdown, a page or JUnit XML; a figure as SVG or PNG."""
