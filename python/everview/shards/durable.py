"""An engine that survives the loss of its process: a log of what arrived and snapshots in a state store, the engine itself in memory.

What: every batch is appended to the log as it came, or as the stage wants it logged; when the log outgrows the last snapshot, a new one takes
its place. The engine stays in the memory of the worker, and the state store says whether it may be used: every batch leaves a version and a
nonce in both.
Representation: ``Store`` is what a state store offers for one engine. A log entry is a blob behind its batch's version and nonce. All
entries of one version are one batch and are applied together.
Invariants: U1, a held engine is used only if its version and nonce are those of the store, or of a batch in the store's log (then the
batches after it are applied first); U2, while it is changed an engine is not held: what a failed attempt leaves behind is never
used; U3, the log is at most as large as the last snapshot or a constant, so that bytes written stay proportional to bytes received.
Cost: per batch, its own bytes; amortised at most three times that for snapshots. Restoring reads a snapshot and a log no larger than it.
"""

from __future__ import annotations

import json
import os
import struct
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

from everview.shards.blob import Section, damaged, pack, slices, unpack
from everview.shards.identity import Identity, mismatch, refuse_other

FORMAT = 1
_ENTRY = struct.Struct("<Q16s")
_SMALLEST_SNAPSHOT = 4 << 20
_SMALLEST_ENTRY = 1 << 10
"""What a log entry counts at least: many small entries are slow to read, too."""
_HELD_SECONDS = 3600.0


class StoredState(Protocol):
    """The state of one engine, to be read."""

    def read_head(self) -> str | None:
        """The head, None for a new engine."""

    def read_log(self) -> Iterable[bytes]:
        """The log's entries in order."""

    def read_snapshot(self) -> Iterable[bytes]:
        """The blobs of the snapshot."""


class Store(StoredState, Protocol):
    """The state of one engine in a state store that rolls back with a failed batch."""

    def write_head(self, text: str) -> None:
        """Replace the head."""

    def append_log(self, entries: Sequence[bytes], at: int) -> None:
        """Add entries to the log; ``at`` is a number above that of all entries in it."""

    def clear_log(self) -> None:
        """Empty the log."""

    def write_snapshot(self, blobs: Iterator[bytes]) -> None:
        """Replace the snapshot."""


@dataclass(slots=True)
class Applied:
    """What a batch does. It is done when ``delta``, the sections of its change, has been read to the end.

    ``accepted``: the sections to log instead of what came, where rows were set aside or carried what is not state.
    ``facts``: plain values from which those who hear of all engines tell whether something is odd. ``seconds``: what the reading of ``delta`` took of processor time, apart from what the reader did.
    """

    delta: Iterable[Section]
    rows_in: int
    accepted: list[Section] | None = None
    notes: dict[str, int] = field(default_factory=dict)
    facts: Sequence[Mapping[str, Any]] = ()
    seconds: float = 0.0


class Stage(Protocol):
    """An engine with its own way of applying a batch."""

    def apply(self, sections: Sequence[Section], *, deltas: bool) -> Applied:
        """Apply a batch, or raise: the engine is then not used again. Without ``deltas`` it is applied at once."""

    def begin(self, delta: Sequence[Section]) -> Sequence[Section]:
        """The first delta of a new engine, with what its view holds before any change."""

    def snapshot(self) -> Iterator[Section]:
        """The state, in sections that fit a blob."""

    def restore(self, sections: Sequence[Section]) -> None:
        """Load sections of a snapshot."""

    def size(self) -> tuple[int, int]:
        """Rows and bytes held."""


@dataclass(slots=True)
class Outcome:
    """What a batch took. ``source``: where the engine came from (new, held, caught up, rebuilt)."""

    source: str
    seconds: float
    rows_in: int
    rows_out: int
    state_rows: int
    state_bytes: int
    written: int
    notes: dict[str, int]
    facts: Sequence[Mapping[str, Any]] = ()


@dataclass(slots=True)
class _Held:
    version: int
    nonce: str
    stage: Stage
    made_with: Any
    used: float = field(default_factory=time.monotonic)


class Holder:
    """Engines held in the memory of a process between batches. Those not asked for within an hour are let go."""

    def __init__(self) -> None:
        self._held: dict[Any, _Held] = {}
        self._lock = threading.Lock()

    def take(self, key: Any) -> _Held | None:
        """The engine under this key, which is then no longer held (U2)."""
        with self._lock:
            found = self._held.pop(key, None)
            old = time.monotonic() - _HELD_SECONDS
            for stale in [k for k, held in self._held.items() if held.used < old]:
                del self._held[stale]
            return found

    def put(self, key: Any, held: _Held) -> None:
        """Hold an engine."""
        with self._lock:
            self._held[key] = held

    def __len__(self) -> int:
        return len(self._held)


class DurableEngine:
    """Runs the batches of one engine. ``make`` gives an empty one; one that is held and was ``made_with`` something else is not used."""

    def __init__(
        self, identity: Identity, make: Callable[[], Stage], holder: Holder, key: Any, made_with: Any = None
    ) -> None:
        self._identity = identity
        self._make = make
        self._holder = holder
        self._key = key
        self._made_with = made_with

    def run(self, store: Store, blobs: Sequence[bytes]) -> Generator[Section, None, Outcome]:
        """Apply a batch that came as blobs, yield the sections of its delta as they are found, and log it."""
        held = self._holder.take(self._key)
        if held is not None and held.made_with != self._made_with:
            held = None
        head = _read_head(store.read_head(), self._identity)
        stage, source = self._engine(store, head, held)
        sections = [section for blob in blobs for section in unpack(blob)]
        started = time.perf_counter()
        applied = stage.apply(sections, deltas=True)
        seconds = time.perf_counter() - started
        rows_out = 0
        for section in applied.delta if head is not None else stage.begin(list(applied.delta)):
            rows_out += sum(batch.num_rows for batch in section[1])
            yield section
        previous = head or _Head(0, "", 0, 0, 0)
        version, nonce = previous.version + 1, os.urandom(16)
        logged = blobs if applied.accepted is None else _as_blobs(applied.accepted)
        entries = [_ENTRY.pack(version, nonce) + blob for blob in logged]
        written = sum(map(len, entries))
        grown = previous.log_bytes + sum(max(len(e), _SMALLEST_ENTRY) for e in entries)
        following = _Head(version, nonce.hex(), previous.entries + len(entries), grown, previous.snapshot_bytes)
        if grown > max(_SMALLEST_SNAPSHOT, previous.snapshot_bytes):
            following = self._write_snapshot(store, stage, following)
            written = following.snapshot_bytes
        else:
            store.append_log(entries, previous.entries)
        store.write_head(following.text(self._identity))
        self._holder.put(self._key, _Held(version, following.nonce, stage, self._made_with))
        rows, size = stage.size()
        seconds += applied.seconds
        told = (applied.notes, applied.facts)
        return Outcome(source, seconds, applied.rows_in, rows_out, rows, size, written, *told)

    def read(self, store: StoredState) -> Stage | None:
        """The engine in the state the store holds; None if it has never run."""
        head = _read_head(store.read_head(), self._identity)
        return None if head is None else self._engine(store, head, None)[0]

    def _write_snapshot(self, store: Store, stage: Stage, head: _Head) -> _Head:
        size = 0

        def blobs() -> Iterator[bytes]:
            nonlocal size
            for section in stage.snapshot():
                blob = pack([section])
                size += len(blob)
                yield blob

        store.write_snapshot(blobs())
        store.clear_log()
        return _Head(head.version, head.nonce, 0, 0, size)

    def _engine(self, store: StoredState, head: _Head | None, held: _Held | None) -> tuple[Stage, str]:
        if head is None:
            return self._make(), "new"
        if held is not None and (held.version, held.nonce) == (head.version, head.nonce):
            return held.stage, "held"
        log = list(store.read_log())
        if (len(log), sum(max(len(e), _SMALLEST_ENTRY) for e in log)) != (head.entries, head.log_bytes):
            raise damaged("its log is not complete")
        entries = [_read_entry(entry) for entry in log]
        if any(b[0] - a[0] not in (0, 1) for a, b in pairwise(entries)):
            raise damaged("its log is not in order")
        known = {(version, nonce) for version, nonce, _ in entries}
        if held is not None and (held.version, held.nonce) in known:
            _replay(held.stage, [e for e in entries if e[0] > held.version], head)
            return held.stage, "caught up"
        stage = self._make()
        size = 0
        for blob in store.read_snapshot():
            size += len(blob)
            stage.restore(unpack(blob))
        if size != head.snapshot_bytes:
            raise damaged("its snapshot is not complete")
        _replay(stage, entries, head)
        return stage, "rebuilt"


def _as_blobs(sections: Sequence[Section]) -> list[bytes]:
    """Rows in blobs for the log; an empty one if there are none, for the log has an entry of every version."""
    found = [pack([(number, [rows])]) for number, batches in sections for batch in batches for rows in slices(batch)]
    return found or [pack([])]


def _replay(stage: Stage, entries: list[tuple[int, str, bytes]], head: _Head) -> None:
    if entries and entries[-1][:2] != (head.version, head.nonce):
        raise damaged(f"its log ends at version {entries[-1][0]}, not {head.version}")
    batches: dict[int, list[Section]] = {}
    for version, _, blob in entries:
        batches.setdefault(version, []).extend(unpack(blob))
    for version in sorted(batches):
        stage.apply(batches[version], deltas=False)


def _read_entry(entry: bytes) -> tuple[int, str, bytes]:
    if len(entry) < _ENTRY.size:
        raise damaged("an entry of its log is cut off")
    version, nonce = _ENTRY.unpack_from(entry)
    return version, nonce.hex(), entry[_ENTRY.size :]


@dataclass(frozen=True, slots=True)
class _Head:
    version: int
    nonce: str
    entries: int
    log_bytes: int
    snapshot_bytes: int

    def text(self, identity: Identity, about: Mapping[str, Any] | None = None) -> str:
        return json.dumps(
            {
                **(about or {}),
                "format": FORMAT,
                **identity.to_json(),
                "version": self.version,
                "nonce": self.nonce,
                "entries": self.entries,
                "log_bytes": self.log_bytes,
                "snapshot_bytes": self.snapshot_bytes,
            }
        )


def _read_head(text: str | None, identity: Identity) -> _Head | None:
    if text is None:
        return None
    try:
        found = json.loads(text)
        head = _Head(*(found[name] for name in ("version", "nonce", "entries", "log_bytes", "snapshot_bytes")))
        given = Identity.from_json(found)
        written_by = found["format"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged(f"its head is not one of everview ({error})") from None
    if written_by != FORMAT:
        raise mismatch(f"it was written in format {written_by} and this version of everview reads format {FORMAT}")
    refuse_other(given, identity)
    return head


def check_identity(text: str | None, identity: Identity, about: Mapping[str, Any]) -> str | None:
    """Refuse a head that belongs to something else; the head to write if there is none yet, with ``about`` for those who read it."""
    if _read_head(text, identity) is not None:
        return None
    return _Head(0, "", 0, 0, 0).text(identity, about)
