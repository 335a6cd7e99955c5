"""The difference of two dates or timestamps: an interval, which is no value of a column, and what can be read of it.

Of two dates it counts days; otherwise it has days, hours, minutes and seconds, and as a number it counts seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.query.expression import Call, Expression, Literal
from everview.schema.datatype import BIGINT, INT, TIMESTAMP, TINYINT, DataType, Kind, decimal
from everview.sql.coercion import arithmetic, cast_to
from everview.sql.functions import date_difference
from everview.sql.functions.casts import explicit_cast

if TYPE_CHECKING:
    from collections.abc import Sequence

_HOUR = 3_600_000_000


@dataclass(frozen=True, slots=True)
class Difference:
    """``days`` of two dates, else ``micros``."""

    days: Expression | None
    micros: Expression

    def cast(self, target: DataType) -> Expression:
        """CAST(end - start AS number): days, or seconds, cut toward zero by integers."""
        if self.days is not None:
            return cast_to(self.days, target)
        if target.is_integer:
            return explicit_cast(_steps(self.micros, (None, 1_000_000)), target)
        seconds = arithmetic("divide", cast_to(self.micros, decimal(20, 0)), Literal(1_000_000, INT))
        return explicit_cast(seconds, target)

    def extract(self, field: str) -> Expression | None:
        """EXTRACT(field FROM end - start); None if an interval has no such field."""
        if field in ("day", "days", "d"):
            return cast_to(_steps(self.micros, (None, 24 * _HOUR)), INT) if self.days is None else self.days
        if self.days is not None:
            return None
        if field in ("hour", "hours", "hr", "h"):
            return cast_to(_steps(self.micros, (24 * _HOUR, _HOUR)), TINYINT)
        if field in ("minute", "minutes", "min", "m"):
            return cast_to(_steps(self.micros, (_HOUR, 60_000_000)), TINYINT)
        if field in ("second", "seconds", "sec", "s"):
            micros = cast_to(_steps(self.micros, (60_000_000, 1)), decimal(20, 0))
            return cast_to(arithmetic("divide", micros, Literal(1_000_000, INT)), decimal(8, 6))
        return None


def difference_of(left: Expression, right: Expression) -> Difference | None:
    """What ``left - right`` is if both are dates or timestamps, else None."""
    kinds = {left.type.kind, right.type.kind}
    if not left.type.is_datetime or not right.type.is_datetime:
        return None
    if kinds == {Kind.DATE}:
        days = date_difference([left, right])
        return Difference(days, days)
    both: Sequence[Expression] = [left, right]
    if kinds != {Kind.TIMESTAMP_NTZ}:
        both = [cast_to(left, TIMESTAMP), cast_to(right, TIMESTAMP)]
    return Difference(None, Call("timestamp_diff", tuple(both), BIGINT, left.nullable or right.nullable))


def _steps(micros: Expression, units: tuple[int | None, int]) -> Expression:
    """The whole smaller units in what is left over by the larger one."""
    larger, smaller = units
    rest = micros if larger is None else arithmetic("modulo", micros, Literal(larger, BIGINT))
    return rest if smaller == 1 else arithmetic("int_div", rest, Literal(smaller, BIGINT))
