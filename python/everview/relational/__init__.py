"""The relational plan: what a SQL text means, before anything is decided about how to maintain it."""
