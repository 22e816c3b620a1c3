"""Builders: what was found as one document, with all that terminal and page show of it."""
