"""Processes by /proc: who descends from whom. A process is ended only if it descends from one that the test has started."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process that cannot be taken for a later one with its number."""

    pid: int
    started: str

    @property
    def lives(self):
        found = _stat(self.pid)
        return found is not None and found[1] == self.started and found[2] != "Z"

    def kill(self):
        if self.lives:
            os.kill(self.pid, signal.SIGKILL)

    @property
    def command(self):
        try:
            return Path(f"/proc/{self.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""


def _stat(pid):
    """Parent, start time and state."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return int(fields[1]), fields[19], fields[0]


def descendants(pid):
    """All processes below one, nearest first."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (found := _stat(int(entry))) is not None:
            children.setdefault(found[0], []).append(Process(int(entry), found[1]))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(0), [])
        found += below
        waiting += [p.pid for p in below]
    return found


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.2)
    return found
