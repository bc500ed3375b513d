"""Policy loop, reflections, memory, statistics, journal and store; protocols live here, adapters outside."""
