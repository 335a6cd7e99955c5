"""Join trees, their choice, the maintenance plan, and explain."""
