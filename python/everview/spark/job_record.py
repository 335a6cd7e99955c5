"""What a checkpoint of a job was written for, in a file beside Spark's own.

The engines compare the state with the view at every batch. But a run without new rows has no batch, and a sink may find its own reason to
refuse a changed view before: so a job compares before it starts a query. A checkpoint without a committed batch has no state and may change.
Checkpoints that are not files at hand have no record; the engines' comparison remains.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from everview.errors import CheckpointError
from everview.shards.durable import Identity

_FILE = "everview.json"


def check_record(checkpoint: str, identity: Identity) -> None:
    """Refuse a checkpoint that was written for another view; record what it is for if that is not settled yet."""
    if "://" in checkpoint:
        return
    directory = Path(re.sub("^file:", "", checkpoint))
    record = directory / _FILE
    settled = any(file.name.isdigit() for file in (directory / "commits").glob("*"))
    if settled and record.exists():
        try:
            stored = Identity(**json.loads(record.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise CheckpointError("CHECKPOINT_DAMAGED", f"{record} cannot be read: {error}") from None
        if stored.fingerprint != identity.fingerprint:
            message = f"the checkpoint was written for another view: {_difference(stored, identity)}"
            raise CheckpointError("CHECKPOINT_MISMATCH", message)
    if not settled:
        directory.mkdir(parents=True, exist_ok=True)
        values = {"fingerprint": identity.fingerprint, "sql": identity.sql, "shards": identity.shards}
        record.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def _difference(stored: Identity, wanted: Identity) -> str:
    if stored.sql != wanted.sql:
        return f"for the SQL\n  {stored.sql}\nand this is\n  {wanted.sql}"
    if stored.shards != wanted.shards:
        return f"with shards = {stored.shards}, and this is {wanted.shards}"
    return "the columns, keys or options of its tables differ, or another version of everview planned it"
