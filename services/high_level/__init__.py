"""Parts of the slow reflection: clusters, failure modes, gate, drift, grid and narrative."""
