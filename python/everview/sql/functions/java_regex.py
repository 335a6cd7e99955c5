"""Java's regular expressions in the syntax of the kernel, whose engine matches in linear time.

What such an engine cannot do (back references, look-around, possessive quantifiers) is refused by name, and so is what is rare and
differs. The rest is written out so that it means what Java means: ``\\d``, ``\\w`` and ``\\s`` and ``(?i)`` know ASCII only, ``.`` stops at five line
terminators, and ``$`` looks over one at the end of the text (as a group named ``__end``, which the kernel takes off the match).
"""

from __future__ import annotations

import re

from everview.errors import cut
from everview.sql.literal import CoercionError

_TERMINATORS = r"\n\r\u{85}\u{2028}\u{2029}"
_CLASSES = {
    "d": "0-9",
    "w": "a-zA-Z_0-9",
    "s": r" \t\n\x0B\f\r",
    "h": r" \t\u{A0}\u{1680}\u{180E}\u{2000}-\u{200A}\u{202F}\u{205F}\u{3000}",
    "v": r"\n\x0B\f\r\u{85}\u{2028}\u{2029}",
}
_POSIX = "Lower Upper ASCII Alpha Digit Alnum Punct Graph Print Blank Cntrl XDigit Space"
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_GROUPS = {
    "=": "look-ahead", "!": "negative look-ahead", "<=": "look-behind", "<!": "negative look-behind", ">": "an atomic group",
}  # fmt: skip
_MOST_REPEATED = 1000


def translate(pattern: str) -> tuple[str, int]:
    """The pattern in the kernel's syntax and the number of its groups.

    ``CoercionError`` if it is none or cannot be matched in linear time.
    """
    translator = _Translator(pattern)
    return translator.whole(), translator.groups


class _Translator:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._ends = 0
        self.groups = 0
        self._fold = self._dot_all = False

    def whole(self) -> str:
        found = self._alternatives()
        if self._at < len(self._pattern):
            raise self._error("a closing parenthesis without an opening one")
        return found

    def _error(self, what: str) -> CoercionError:
        return CoercionError(f"the pattern `{cut(self._pattern)}` has {what}")

    def _no(self, what: str) -> CoercionError:
        return self._error(f"{what}, which is not supported: patterns are matched in linear time")

    def _peek(self, length: int = 1) -> str:
        return self._pattern[self._at : self._at + length]

    def _take(self) -> str:
        if self._at >= len(self._pattern):
            raise self._error("an end where more is expected")
        self._at += 1
        return self._pattern[self._at - 1]

    def _match(self, expression: str) -> re.Match[str] | None:
        found = re.compile(expression).match(self._pattern, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _alternatives(self) -> str:
        """Up to a closing parenthesis or the end; flags that are set inside end there."""
        flags = self._fold, self._dot_all
        out: list[str] = []
        quantifiable = False
        while self._peek() not in ("", ")"):
            character = self._take()
            if character in "*+?{":
                if not quantifiable:
                    raise self._error(f"a `{character}` without anything before it")
                out.append(self._quantifier(character))
                quantifiable = False
                continue
            quantifiable = character not in "|^"
            if character == "|":
                out.append("|")
            elif character == "(":
                part = self._group()
                quantifiable = part != ""
                out.append(part)
            elif character == "[":
                out.append(self._class())
            elif character == ".":
                out.append("(?s:.)" if self._dot_all else f"[^{_TERMINATORS}]")
            elif character == "^":
                out.append(r"\A")
            elif character == "$":
                out.append(self._end())
            elif character == "\\":
                out.append(self._escape())
            else:
                out.append(self._literal(character))
        self._fold, self._dot_all = flags
        return "".join(out)

    def _quantifier(self, character: str) -> str:
        if character == "{":
            found = self._match(r"(\d+)(,(\d*))?\}")
            if found is None:
                raise self._error("a `{` that begins no quantifier")
            if max(int(found[1]), int(found[3] or 0)) > _MOST_REPEATED:
                raise self._no(f"a repetition of more than {_MOST_REPEATED}")
            if found[3] and int(found[3]) < int(found[1]):
                raise self._error("a repetition of at least more than at most")
            character += found[0]
        if self._peek() == "+":
            raise self._no("a possessive quantifier")
        lazy = self._match(r"\?") is not None
        return character + ("?" if lazy else "")

    def _group(self) -> str:
        """What follows an opening parenthesis; empty if it only sets flags."""
        opening = "("
        flags = self._fold, self._dot_all
        if self._match(r"\?") is not None:
            name = self._match(r"<([a-zA-Z][a-zA-Z0-9]*)>")
            refused = self._match(r"<?[=!]|>")
            switched = None if name or refused else self._match(r"([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
            if refused is not None:
                raise self._no(_GROUPS[refused[0]])
            if name is not None:
                opening = f"(?P<{name[1]}>"
            elif switched is None:
                raise self._error("an unknown kind of group")
            else:
                self._switch(switched[1], on=True)
                self._switch(switched[2] or "", on=False)
                if switched[3] == ")":
                    return ""
                opening = "(?:"
        self.groups += opening != "(?:"
        inside = self._alternatives()
        if self._match(r"\)") is None:
            raise self._error("an opening parenthesis without a closing one")
        self._fold, self._dot_all = flags
        return f"{opening}{inside})"

    def _switch(self, letters: str, *, on: bool) -> None:
        for letter in letters:
            if letter == "i":
                self._fold = on
            elif letter == "s":
                self._dot_all = on
            else:
                raise self._error(f"the flag `{letter}`, which is not supported")

    def _end(self) -> str:
        self._ends += 1
        return rf"(?:(?P<__end{self._ends}>\r\n|[{_TERMINATORS}])?\z)"

    def _literal(self, character: str) -> str:
        if self._fold and character.isascii() and character.isalpha():
            return f"[{character.lower()}{character.upper()}]"
        return _quoted(character)

    def _escape(self) -> str:
        """What follows a backslash outside of a class."""
        quoted = self._match(r"(?s)Q(.*?)(?:\\E|\Z)")
        if quoted is not None:
            return "(?:" + "".join(self._literal(c) for c in quoted[1]) + ")"
        letter = self._peek()
        if letter in ("b", "B", "A", "z"):
            return "\\" + self._take()
        if letter == "Z":
            self._take()
            return self._end()
        if letter == "R":
            self._take()
            return rf"(?:\r\n|[{_CLASSES['v']}])"
        if letter.isdigit():
            raise self._no("a back reference" if letter != "0" else "an octal escape")
        if letter == "k":
            raise self._no("a back reference")
        named = self._named_class()
        if named is not None:
            return f"[{named}]"
        return self._literal(self._escaped_character())

    def _named_class(self) -> str | None:
        """A class such as ``\\d`` as something that may stand inside of brackets."""
        letter = self._peek()
        if letter and letter.lower() in _CLASSES:
            self._take()
            inside = _CLASSES[letter.lower()]
            return inside if letter.islower() else f"[^{inside}]"
        found = self._match(r"([pP])(?:\{(\w+)\}|([A-Z]))")
        if found is None:
            return None
        name = found[2] or found[3]
        if name in _POSIX.split():
            return f"[:{'^' if found[1] == 'P' else ''}{name.lower()}:]"
        if not re.fullmatch(r"(Is)?(L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cf])", name):
            raise self._error(f"the class `{name}`, which is not supported")
        return rf"\{found[1]}{{{name.removeprefix('Is')}}}"

    def _escaped_character(self) -> str:
        code = self._match(r"u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}")
        if code is not None:
            value = int(code[1] or code[2] or code[3], 16)
            if 0xD800 <= value < 0xE000 or value > 0x10FFFF:
                raise self._error("half of a surrogate pair")
            return chr(value)
        letter = self._take()
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter.isascii() and letter.isalnum():
            raise self._error(f"the escape `\\{letter}`, which is not supported")
        return letter

    def _class(self) -> str:
        """What follows an opening bracket."""
        out = ["[^" if self._match(r"\^") else "["]
        if self._peek() == "]":
            raise self._error("a bracket expression that is empty")
        while self._match(r"\]") is None:
            if self._peek() == "[" or self._peek(2) == "&&":
                raise self._error("a class inside of a class, which is not supported")
            first = self._member()
            if isinstance(first, tuple):
                out.append(first[0])
                continue
            last = first
            if self._peek() == "-" and self._peek(2)[1:] not in ("]", ""):
                self._take()
                if self._peek() == "[":
                    raise self._error("a class inside of a class, which is not supported")
                bound = self._member()
                if isinstance(bound, tuple) or bound < first:
                    raise self._error("a range that is none")
                last = bound
            out.append(self._range(first, last))
        return "".join(out) + "]"

    def _member(self) -> str | tuple[str]:
        """A character, or, in a tuple, a class."""
        character = self._take()
        if character != "\\":
            return character
        if self._peek() == "Q":
            raise self._error("a quotation inside of a class, which is not supported")
        named = self._named_class()
        return self._escaped_character() if named is None else (named,)

    def _range(self, first: str, last: str) -> str:
        shown = _in_class(first) if first == last else f"{_in_class(first)}-{_in_class(last)}"
        if self._fold:
            for low, high, shift in (("a", "z", -32), ("A", "Z", 32)):
                start, end = max(first, low), min(last, high)
                if start <= end:
                    shown += f"{chr(ord(start) + shift)}-{chr(ord(end) + shift)}"
        return shown


def _quoted(character: str) -> str:
    if (
        character.isascii()
        and not character.isalnum()
        and character.isprintable()
        and character not in " _<>'\"%,;:=@`!/"
    ):
        return "\\" + character
    return character if character.isprintable() else f"\\u{{{ord(character):X}}}"


def _in_class(character: str) -> str:
    return character if character.isascii() and character.isalnum() else f"\\u{{{ord(character):X}}}"
