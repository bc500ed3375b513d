"""The deterministic engine: arrays in, arrays and events out; no I/O, clock, randomness, database or model.

Importing the package first points numba's disk cache at a folder named by the hash of these sources,
because that cache does not notice an edited helper of a cached function.
"""

from trading_core.compiled_cache import use_cache_of_these_sources

use_cache_of_these_sources()
