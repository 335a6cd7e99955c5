"""A view over shards: fragments of its graph, and the exchanges between them."""
