"""Policy loop, reflections, memory, statistics, journal and store. Protocols live here, their adapters outside."""
