"""What has been told already, so that each anomaly is told once; remembers a bounded number of them."""

from collections.abc import Hashable

MOST_KEYS = 8_192


class SeenOnce:
    """A register of keys that forgets the oldest when it is full."""

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._keys: dict[Hashable, None] = {}
        self._most = most

    def first(self, key: Hashable) -> bool:
        """Whether this key comes for the first time; it is remembered."""
        if key in self._keys:
            return False
        if len(self._keys) == self._most:
            del self._keys[next(iter(self._keys))]
        self._keys[key] = None
        return True
