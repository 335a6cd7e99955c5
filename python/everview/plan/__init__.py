"""The maintenance plan, and what is known of a view from it."""
