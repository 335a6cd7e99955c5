"""Benchmarks of everview against recomputation and hand-written maintenance; see README.md."""
