r"""Regular expressions of RE2, which ONNX asks for, as Python writes them.

Only whether a whole text matches is asked, so groups need no numbers. The two languages differ in
small things: classes such as `\d` are of ASCII alone, flags hold from where they stand to the end
of their group, `$` is the very end, `{,3}` is no repetition, and there are `\z`, `\pL`, `\Q…\E`
and `[[:alpha:]]`. What RE2 has not (references, looking around, possessive repetition) is refused,
as is what Python cannot tell: scripts, and single bytes.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from typing import Final, NoReturn

__all__ = ["NotRegular", "in_python"]

MOST: Final = 1000
"""Repetitions that a number may ask for, as RE2 has it."""

Ranges = tuple[tuple[int, int], ...]
"""A class: the first and last characters of its parts, in order."""


def _spans(ends: str) -> Ranges:
    """A class by the ends of its parts, two letters for each."""
    return tuple((ord(a), ord(b)) for a, b in zip(ends[::2], ends[1::2], strict=True))


_PERL: Final = {"d": _spans("09"), "w": _spans("09AZ__az"), "s": _spans("\t\n\f\r  ")}
_NAMED: Final = {
    "alnum": _spans("09AZaz"),
    "alpha": _spans("AZaz"),
    "ascii": _spans("\x00\x7f"),
    "blank": _spans("\t\t  "),
    "cntrl": _spans("\x00\x1f\x7f\x7f"),
    "digit": _PERL["d"],
    "graph": _spans("!~"),
    "lower": _spans("az"),
    "print": _spans(" ~"),
    "punct": _spans("!/:@[`{~"),
    "space": _spans("\t\r  "),
    "upper": _spans("AZ"),
    "word": _PERL["w"],
    "xdigit": _spans("09AFaf"),
}
_CONTROL: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PLACES: Final = {"A": r"\A", "z": r"\Z", "b": r"(?a:\b)", "B": r"(?!(?a:\b))"}
_REPEAT: Final = re.compile(r"\{(\d+)(?:,(\d*))?\}", re.ASCII)
_FLAGS: Final = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAME: Final = re.compile(r"\(\?P?<\w+>")
_UNICODE: Final = re.compile(r"\\([pP])(?:\{(\^?)(\w+)\}|(\w))")
_HEXADECIMAL: Final = re.compile(r"\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))")
_OCTAL: Final = re.compile(r"\\([1-7][0-7]{1,2}|0[0-7]{0,2})")


class NotRegular(ValueError):  # noqa: N818  (the text says what it is)
    """A pattern that RE2 refuses, or that Python cannot express."""


@functools.lru_cache(64)
def in_python(pattern: str) -> re.Pattern[str]:
    """A pattern for `fullmatch`; `NotRegular` if there is none."""
    return re.compile(_Translation(pattern).all())


class _Translation:
    """Goes over a pattern from left to right; `flags` are those that hold here."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = pattern, 0
        self.flags: frozenset[str] = frozenset()
        self.around: list[frozenset[str]] = []
        self.made: list[str] = []

    def all(self) -> str:
        while self.at < len(self.pattern):
            self._next()
        if self.around:
            self._refuse("a group does not end")
        return "".join(self.made)

    def _next(self) -> None:
        letter = self.pattern[self.at]
        if letter == "(":
            self._group()
        elif letter == ")":
            self._take(1)
            if not self.around:
                self._refuse("a group ends that has not begun")
            self.flags = self.around.pop()
            self._repeated(")")
        elif letter == "|":
            self.made.append(self._take(1))
        elif letter in "*+?" or _REPEAT.match(self.pattern, self.at):
            self._refuse("there is nothing to repeat")
        elif letter in "^$":
            self._take(1)
            whole = {"^": r"\A", "$": r"\Z"}[letter]
            self._repeated(f"(?m:{letter})" if "m" in self.flags else f"(?:{whole})")
        elif letter == ".":
            self._take(1)
            self._repeated("(?s:.)" if "s" in self.flags else r"[^\n]")
        elif letter == "[":
            self._repeated(self._cased(self._bracket()))
        elif letter == "\\":
            self._escape()
        else:
            self._repeated(self._cased(re.escape(self._take(1))))

    def _group(self) -> None:
        flags, name = (form.match(self.pattern, self.at) for form in (_FLAGS, _NAME))
        if flags is None:
            if name is None and self.pattern.startswith("(?", self.at):
                self._refuse("RE2 has no such group")
            self._take(len(name[0]) if name else 1)
        else:
            self._take(len(flags[0]))
        if flags is None or flags[3] == ":":
            self.around.append(self.flags)
            self.made.append("(?:")
        if flags is not None:
            self.flags = (self.flags | set(flags[1])) - set(flags[2] or "")

    def _escape(self) -> None:
        if self.pattern.startswith(r"\Q", self.at):
            end = self.pattern.find(r"\E", self.at)
            text = self.pattern[self.at + 2 : end if end >= 0 else None]
            self.at = end + 2 if end >= 0 else len(self.pattern)
            self.made += [self._cased(re.escape(letter)) for letter in text[:-1]]
            if text:
                self._repeated(self._cased(re.escape(text[-1])))
            return
        second = self.pattern[self.at + 1 : self.at + 2]
        if second in _PLACES:
            self._take(2)
            self._repeated(f"(?:{_PLACES[second]})")
        else:
            found = self._class() or re.escape(self._character())
            self._repeated(self._cased(f"[{found}]" if found[1:] else found))

    def _bracket(self) -> str:
        self._take(1)
        negated = "^" if self.pattern.startswith("^", self.at) else ""
        self._take(len(negated))
        items: list[str] = []
        while not self.pattern.startswith("]", self.at) or not items:
            if self.at >= len(self.pattern):
                self._refuse("a class does not end")
            items.append(self._class() or self._range())
        self._take(1)
        return f"[{negated}{''.join(items)}]"

    def _range(self) -> str:
        first = self._bracket_character()
        rest = self.pattern[self.at : self.at + 2]
        if rest[:1] != "-" or rest[1:] in ("", "]"):
            return re.escape(first)
        self._take(1)
        last = self._bracket_character()
        if last < first:
            self._refuse(f"`{first}` is not before `{last}`")
        return f"{re.escape(first)}-{re.escape(last)}"

    def _bracket_character(self) -> str:
        return self._character() if self.pattern.startswith("\\", self.at) else self._take(1)

    def _class(self) -> str:
        """A class that has a name, as it is written in brackets; empty if there is none."""
        if self.pattern.startswith("[:", self.at):
            return self._named()
        if self.pattern.startswith((r"\p", r"\P"), self.at):
            return self._category()
        found = re.compile(r"\\([dwsDWS])").match(self.pattern, self.at)
        if found is None:
            return ""
        self._take(2)
        held = _PERL[found[1].lower()]
        return _written(held if found[1].islower() else _others(held))

    def _named(self) -> str:
        end = self.pattern.find(":]", self.at)
        if end < 0:
            return ""
        name = self.pattern[self.at + 2 : end]
        held = _NAMED.get(name.removeprefix("^"))
        if held is None:
            self._refuse(f"there is no class `{name}`")
        self.at = end + 2
        return _written(_others(held) if name.startswith("^") else held)

    def _category(self) -> str:
        found = _UNICODE.match(self.pattern, self.at)
        name = (found[3] or found[4]) if found else ""
        held = _category_ranges(name) if name else ()
        if found is None or not held:
            self._refuse(f"of classes of Unicode, general categories are known here, not `{name}`")
        self._take(len(found[0]))
        return _written(_others(held) if (found[1] == "P") != bool(found[2]) else held)

    def _character(self) -> str:
        """The character that an escape stands for."""
        if found := _HEXADECIMAL.match(self.pattern, self.at):
            return self._numbered(found[0], found[1] or found[2], 16)
        if found := _OCTAL.match(self.pattern, self.at):
            return self._numbered(found[0], found[1], 8)
        letter = self._take(2)[1:]
        if letter in _CONTROL:
            return _CONTROL[letter]
        if not letter or not letter.isascii() or letter.isalnum():
            self._refuse(f"`\\{letter}` has no meaning in RE2, or none here")
        return letter

    def _numbered(self, text: str, digits: str, base: int) -> str:
        self._take(len(text))
        number = int(digits, base)
        if number > sys.maxunicode:
            self._refuse(f"there is no character `{text}`")
        return chr(number)

    def _repeated(self, atom: str) -> None:
        """An atom with what says how often it stands here."""
        counted = _REPEAT.match(self.pattern, self.at)
        sign = self.pattern[self.at : self.at + 1]
        if counted is None and (not sign or sign not in "*+?"):
            self.made.append(atom)
            return
        text = self._take(len(counted[0]) if counted else 1)
        if counted and max(int(n) for n in counted.groups() if n) > MOST:
            self._refuse(f"`{text}` repeats more than {MOST} times")
        if self.pattern.startswith("?", self.at):
            self._take(1)  # whether few or many are tried first does not matter here
        following = self.pattern[self.at : self.at + 1]
        if (following and following in "*+?") or _REPEAT.match(self.pattern, self.at):
            self._refuse("a repetition is repeated")
        self.made.append(atom + text)

    def _cased(self, atom: str) -> str:
        return f"(?i:{atom})" if "i" in self.flags else atom

    def _take(self, count: int) -> str:
        text = self.pattern[self.at : self.at + count]
        self.at += count
        return text

    def _refuse(self, reason: str) -> NoReturn:
        raise NotRegular(f"the pattern `{self.pattern}`: {reason} (at {self.at})")


def _written(held: Ranges) -> str:
    """A class as it is written in brackets."""
    return "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in held)


def _others(held: Ranges) -> Ranges:
    """All characters that are not in a class."""
    edges = [-1, *(edge for part in held for edge in part), sys.maxunicode + 1]
    gaps = ((a + 1, b - 1) for a, b in zip(edges[::2], edges[1::2], strict=True))
    return tuple((a, b) for a, b in gaps if a <= b)


@functools.cache
def _category_ranges(name: str) -> Ranges:
    """The characters of a general category of Unicode, none if there is no such; takes a while."""
    if name == "Any":
        return ((0, sys.maxunicode),)
    found: list[tuple[int, int]] = []
    for code in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(code))
        if not category.startswith(name) or category == "Cn":  # characters that there are not
            continue
        first = found.pop()[0] if found and found[-1][1] == code - 1 else code
        found.append((first, code))
    return tuple(found)
