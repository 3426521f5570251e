"""Prometheus behind the console, with each project held to its own series.

``lexer`` and ``promql`` rewrite a member's query, ``client`` sends it,
``answers`` brings the reply into the console's shape.
"""
