"""What the machine has: limits that no argument gives are taken from it."""

from __future__ import annotations

import os
from pathlib import Path

_SHARE_OF_DELTAS = 4
"""One delta may take this part of the memory, at most."""
_FALLBACK = 4 << 30
_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_bytes() -> int:
    """The memory that this process may use: the machine's, or what its control group is given."""
    limits = [_installed()]
    for path in _GROUP_LIMITS:
        try:
            limits.append(int(Path(path).read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such group, or `max`
            continue
    return min(limits)


def default_delta_limit() -> int:
    """The bytes that one delta may take where nothing else is said."""
    return memory_bytes() // _SHARE_OF_DELTAS


def _installed() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system
        return _FALLBACK
