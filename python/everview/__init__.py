"""everview keeps the result of a SQL query up to date while its tables change, without storing the join result.

>>> import everview as ev
>>> with ev.connect() as db:
...     db.execute("CREATE TABLE g (src BIGINT, dst BIGINT)")
...     hop = db.create_view("hop", "SELECT a.src, b.dst FROM g a JOIN g b ON a.dst = b.src")
...     deltas = db.insert("g", [(1, 2), (2, 3)])
...     deltas["hop"].to_pylist()
[{'src': 1, 'dst': 3, '_multiplicity': 1}]
"""

import logging as _logging

from everview.errors import (
    AccessPatternError,
    CallbackError,
    ChangeError,
    CheckpointError,
    EverviewError,
    InternalError,
    JobError,
    PipelineError,
    SchemaError,
    SessionError,
    SinkError,
    SnapshotError,
    SqlParseError,
    StaleIteratorError,
    UnsupportedQueryError,
)
from everview.session.changes import Executed
from everview.session.result import Result
from everview.session.session import Session, connect
from everview.session.snapshot import restore
from everview.session.view import Subscription, View

__all__ = [
    "AccessPatternError",
    "CallbackError",
    "ChangeError",
    "CheckpointError",
    "EverviewError",
    "Executed",
    "InternalError",
    "JobError",
    "PipelineError",
    "Result",
    "SchemaError",
    "Session",
    "SessionError",
    "SinkError",
    "SnapshotError",
    "SqlParseError",
    "StaleIteratorError",
    "Subscription",
    "UnsupportedQueryError",
    "View",
    "connect",
    "restore",
]

_logging.getLogger("everview").addHandler(_logging.NullHandler())
