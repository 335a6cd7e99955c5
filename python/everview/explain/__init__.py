"""``explain``: what a view is, keeps and promises, as text, values and pictures."""
