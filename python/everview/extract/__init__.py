"""A rewritten relational plan to a logical view: join blocks become cores, what is left becomes operators."""
