"""A view over several engines: what travels between them, and how each survives the loss of its process."""
