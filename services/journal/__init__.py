"""The append-only, hash-chained journal: rows, writer, sinks, chain, lineage; stored by `services.store`."""
