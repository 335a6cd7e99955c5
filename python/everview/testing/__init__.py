"""Testing of views against recomputation in DuckDB, and Hypothesis strategies for queries and change streams.

Needs duckdb and hypothesis, which everview itself does not.
"""
