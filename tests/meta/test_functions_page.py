"""The page of functions is made from the register; EVERVIEW_GOLDEN=rewrite writes it."""

import os

from everview.sql.functions import GROUPS, SCALARS
from everview.sql.functions.page import page


def test_the_page_is_current(root):
    path = root / "docs" / "reference" / "functions.md"
    if os.environ.get("EVERVIEW_GOLDEN") == "rewrite":
        path.write_text(page())
    assert path.read_text() == page(), "run `make golden`"


def test_names_are_registered_once():
    names = [name for group in GROUPS.values() for f in group for name in (f.name, *f.aliases)]
    assert sorted(names) == sorted(SCALARS)
    assert all(f.meaning and "|" not in f.meaning.replace("\\|", "") for f in SCALARS.values())


def test_the_arguments_say_how_many_there_are():
    counts = {
        name: (SCALARS[name].least, SCALARS[name].most)
        for name in ("pi", "upper", "substring", "concat", "concat_ws", "log", "greatest")
    }
    assert counts == {
        "pi": (0, 0),
        "upper": (1, 1),
        "substring": (2, 3),
        "concat": (1, None),
        "concat_ws": (1, None),
        "log": (1, 2),
        "greatest": (2, None),
    }
