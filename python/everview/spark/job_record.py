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
from everview.shards.identity import Identity, refuse_other

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
            stored = Identity.from_json(json.loads(record.read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError("CHECKPOINT_DAMAGED", f"{record} cannot be read: {error}") from None
        refuse_other(stored, identity)
    if not settled:
        directory.mkdir(parents=True, exist_ok=True)
        record.write_text(json.dumps(identity.to_json(), indent=1) + "\n", encoding="utf-8")
