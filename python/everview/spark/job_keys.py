"""Typed access to a TOML table: what is unknown, missing or of another type is told by the full name of its key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everview.errors import PipelineError

_KINDS: dict[type, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}


def job_error(code: str, file: Path, key: str, message: str, hint: str) -> PipelineError:
    """The error for one key of a job file."""
    return PipelineError(code, f"{file.name}: `{key}` {message}", hint=hint, file=str(file), key=key)


def near(given: str, known: Iterable[str]) -> str:
    """A hint that names what was probably meant, or else everything that is allowed."""
    names = list(known)
    found = difflib.get_close_matches(given.lower(), names, n=2, cutoff=0.6)
    if found:
        return "did you mean " + " or ".join(f"`{name}`" for name in found) + "?"
    return "known are " + ", ".join(f"`{name}`" for name in names)


@dataclass(frozen=True, slots=True)
class Section:
    """One table of a job file, ``name`` being its full key (empty for the file itself)."""

    file: Path
    name: str
    values: Mapping[str, Any]

    def key(self, key: str) -> str:
        """The full name of a key."""
        return f"{self.name}.{key}" if self.name else key

    def refuse_unknown(self, known: Sequence[str]) -> None:
        """Refuse keys that are not known."""
        for key in self.values:
            if key not in known:
                raise job_error("JOB_UNKNOWN_KEY", self.file, self.key(key), "is not a key of a job", near(key, known))

    def refuse(self, keys: Iterable[str], why: str, hint: str) -> None:
        """Refuse keys that have no meaning beside others."""
        for key in keys:
            if key in self.values:
                raise self.error(key, why, hint)

    def error(self, key: str, message: str, hint: str) -> PipelineError:
        """The error for a value without sense."""
        return job_error("JOB_INVALID_VALUE", self.file, self.key(key), message, hint)

    def require(self, key: str, hint: str) -> None:
        """Refuse a table that lacks a key."""
        if key not in self.values:
            raise job_error("JOB_MISSING_KEY", self.file, self.key(key), "is missing", hint)

    # ---- values ------------------------------------------------------------------------------------------------------

    def text(self, key: str) -> str | None:
        """A text that is not empty; None if the key is not there."""
        value = self._typed(key, str)
        if value is not None and not value.strip():
            raise self.error(key, "is empty", "give it a value, or leave it out")
        return None if value is None else str(value)

    def required_text(self, key: str, hint: str) -> str:
        """A text that must be there."""
        self.require(key, hint)
        found = self.text(key)
        assert found is not None
        return found

    def choice(self, key: str, options: Sequence[str]) -> str | None:
        """One of some words; None if the key is not there."""
        value = self.text(key)
        if value is not None and value not in options:
            raise self.error(key, f"is {value!r}, not one of {', '.join(options)}", near(value, options))
        return value

    def positive(self, key: str, default: int) -> int:
        """A whole number from 1 on."""
        value = self._typed(key, int)
        if value is not None and value < 1:
            raise self.error(key, f"is {value}", "use a whole number from 1 on")
        return default if value is None else int(value)

    def names(self, key: str) -> tuple[str, ...]:
        """A list of distinct names, or one of them as a text; empty if the key is not there."""
        value = self.values.get(key)
        if value is None:
            return ()
        found = [value] if isinstance(value, str) else self._typed(key, list)
        if not all(isinstance(name, str) and name for name in found):
            raise job_error(
                "JOB_WRONG_TYPE", self.file, self.key(key), "is not a list of texts", 'write it like ["id", "line"]'
            )
        if not found or len({name.lower() for name in found}) < len(found):
            raise self.error(key, f"is {found!r}", "name one or more columns, each once")
        return tuple(found)

    def settings(self, key: str) -> dict[str, str]:
        """A table of plain values, as the texts that Spark takes; nested tables are dotted names."""
        return {} if key not in self.values else dict(self._settings(self.section(key), ""))

    def section(self, key: str) -> Section:
        """A table within this one."""
        return Section(self.file, self.key(key), self._typed(key, dict))

    def sections(self, key: str) -> dict[str, Section]:
        """The tables of a table, by name."""
        outer = self.section(key)
        return {name: outer.section(name) for name in outer.values}

    def path(self, key: str) -> str | None:
        """A path, relative ones being relative to the job file; what has a scheme (``s3://``) stays as it is."""
        value = self.text(key)
        if value is None or "://" in value or value.startswith("file:"):
            return value
        return str((self.file.parent / Path(value).expanduser()).resolve())

    def required_path(self, key: str, hint: str) -> str:
        """A path that must be there."""
        self.require(key, hint)
        found = self.path(key)
        assert found is not None
        return found

    def _settings(self, section: Section, prefix: str) -> Iterable[tuple[str, str]]:
        for name, value in section.values.items():
            if isinstance(value, dict):
                yield from self._settings(section.section(name), f"{prefix}{name}.")
            elif isinstance(value, bool):
                yield prefix + name, str(value).lower()
            elif isinstance(value, str | int | float):
                yield prefix + name, str(value)
            else:
                message = f"is {type(value).__name__}, not a text, a number or true or false"
                raise job_error("JOB_WRONG_TYPE", self.file, section.key(name), message, "write it as a text")

    def _typed(self, key: str, kind: type) -> Any:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            found = next((text for k, text in _KINDS.items() if type(value) is k), f"a {type(value).__name__}")
            message = f"is {found}, not {_KINDS[kind]}"
            hint = f'write `{key} = "..."`' if kind is str else f"give it {_KINDS[kind]}"
            raise job_error("JOB_WRONG_TYPE", self.file, self.key(key), message, hint)
        return value
