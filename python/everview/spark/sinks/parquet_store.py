"""The commit of a Parquet-backed table: which files are visible, and how they change from one batch to the next.

    table/schema.parquet                          no rows; keeps the schema readable when the view is empty
    table/bucket-00003-<token>.parquet            the rows of one bucket
    table/_everview/state.json                    what is committed: schema, options, files by bucket, last batch by writer
    table/_everview/journal.json                  a commit under way: files to publish, files to remove, the state after it
    table/_everview/staged/                       files that are not published yet
    table/_everview/lock                          held while a batch is applied

Readers skip names that start with ``_`` or ``.``. A commit is decided by the rename that creates the journal; the steps after it can each be
repeated, and the next call repeats them if the process died (roll forward). Without a journal, staged files are dropped (roll back). Files are
flushed to the disk before the journal names them, directories after each kind of change.

While a commit publishes, a reader can list both files of a bucket or find one gone: readers that must not see this read between batches.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from everview.errors import SinkError

FORMAT = 1
SCHEMA_FILE = "schema.parquet"


@dataclass(frozen=True, slots=True)
class State:
    """What is committed."""

    columns: list[list[str]]  # name and Spark type
    key: list[str] | None
    buckets: int
    files: dict[str, str] = field(default_factory=dict)  # by bucket; an empty bucket has none
    batches: dict[str, int] = field(default_factory=dict)  # the last batch by writer
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class Journal:
    """A decided commit."""

    publish: list[str]
    remove: list[str]
    state: State


class Store:
    """The files of one table. All but ``locked`` and ``is_there`` is called with the lock held."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.hidden = directory / "_everview"
        self.staged = self.hidden / "staged"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes and threads out; the system frees the lock of a process that died."""
        self.staged.mkdir(parents=True, exist_ok=True)
        with (self.hidden / "lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def is_there(self) -> bool:
        """Whether something was committed here; needs no lock."""
        return any((self.hidden / name).exists() for name in ("state.json", "journal.json"))

    def recover(self) -> State | None:
        """Finish or drop what a call before left undone; the committed state, None for a new table."""
        journal = self._read("journal.json")
        if journal is not None:
            self._carry_out(Journal(journal["publish"], journal["remove"], State(**journal["state"])))
        self.drop_staged()
        state = self._read("state.json")
        if state is None:
            return None
        if state["format"] != FORMAT:
            message = f"{self.directory} has format {state['format']}, and this everview writes {FORMAT}"
            raise SinkError(
                "SINK_DAMAGED", message, hint="continue with the everview that wrote it, or start a new table"
            )
        return State(**state)

    def visible(self) -> list[str]:
        """The names that readers see."""
        return sorted(p.name for p in self.directory.iterdir() if not p.name.startswith(("_", ".")))

    def commit(self, publish: list[str], remove: list[str], state: State) -> None:
        """Replace files and state. O(files of the batch + buckets)."""
        if publish or remove:
            journal = Journal(publish, remove, state)
            sync(self.staged)
            self.write_journal(journal)
            self._carry_out(journal)
        else:
            self.write_state(state)

    def _carry_out(self, journal: Journal) -> None:
        self.publish(journal.publish)
        self.remove(journal.remove)
        self.write_state(journal.state)
        self.finish()

    def write_journal(self, journal: Journal) -> None:
        content = {"publish": journal.publish, "remove": journal.remove, "state": _plain(journal.state)}
        self._write("journal.json", content)

    def publish(self, names: list[str]) -> None:
        for name in names:
            try:
                (self.staged / name).rename(self.directory / name)
            except FileNotFoundError:  # published before the process died
                if not (self.directory / name).exists():
                    message = f"{self.directory} lacks {name}, which a commit under way is to publish"
                    raise SinkError("SINK_DAMAGED", message, hint="start a new table from a new checkpoint") from None
        sync(self.directory)

    def remove(self, names: list[str]) -> None:
        for name in names:
            (self.directory / name).unlink(missing_ok=True)
        sync(self.directory)

    def write_state(self, state: State) -> None:
        self._write("state.json", _plain(state))

    def finish(self) -> None:
        (self.hidden / "journal.json").unlink(missing_ok=True)
        sync(self.hidden)

    def drop_staged(self) -> None:
        """Remove what is not published, such as the files of tasks that ran twice."""
        for path in self.staged.iterdir():
            path.unlink(missing_ok=True)

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            content: dict[str, Any] = json.loads((self.hidden / name).read_text("utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            message = f"{self.hidden / name} is not what everview wrote: {error}"
            raise SinkError("SINK_DAMAGED", message, hint="start a new table from a new checkpoint") from error
        return content

    def _write(self, name: str, content: dict[str, Any]) -> None:
        scratch = self.hidden / f"{name}.{uuid.uuid4().hex}"
        try:
            with scratch.open("w", encoding="utf-8") as handle:
                json.dump(content, handle)
                handle.flush()
                os.fsync(handle.fileno())
            scratch.rename(self.hidden / name)
        finally:
            scratch.unlink(missing_ok=True)
        sync(self.hidden)


def sync(directory: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _plain(state: State) -> dict[str, Any]:
    return {name: getattr(state, name) for name in State.__slots__}
