"""A fleet of logs: listed, joined with what each was given, scanned by many processes, kept in a store, told on a page.

The only place that imports polars; nothing of it is imported by a single triage.
"""
