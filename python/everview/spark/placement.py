"""Which grouping key each engine has, so that Spark's partitioner gives every one a partition of its own.

Spark sends a row to partition ``pmod(murmur3(key), partitions)``. The keys of n engines are searched such that with n partitions this is one to
one. They depend on n alone: state is found again whatever the number of partitions is.
"""

from __future__ import annotations

GUARD = -1
"""The key that every task sends to: it holds no engine, only what the state belongs to, and so is there to be compared in every batch."""

_MASK = 0xFFFFFFFF


def engine_keys(engines: int) -> list[int]:
    """The grouping key of each engine.

    >>> [partition_of(key, 4) for key in engine_keys(4)]
    [0, 1, 2, 3]
    """
    keys: dict[int, int] = {}
    key = 0
    while len(keys) < engines:
        keys.setdefault(partition_of(key, engines), key)
        key += 1
    return [keys[at] for at in range(engines)]


def partition_of(key: int, partitions: int) -> int:
    """The partition of an INT key: Murmur3 (x86, 32 bits, seed 42), as Spark's HashPartitioning has it."""
    k = (key & _MASK) * 0xCC9E2D51 & _MASK
    k = ((k << 15) | (k >> 17)) & _MASK
    h = 42 ^ (k * 0x1B873593 & _MASK)
    h = ((h << 13) | (h >> 19)) & _MASK
    h = (h * 5 + 0xE6546B64) & _MASK
    h ^= 4  # the length in bytes
    h ^= h >> 16
    h = h * 0x85EBCA6B & _MASK
    h ^= h >> 13
    h = h * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    signed = h - (1 << 32) if h >= 1 << 31 else h
    return signed % partitions
