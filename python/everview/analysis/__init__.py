"""Facts about queries: hypergraphs, classes with witnesses, and the guarantees that follow from them."""
