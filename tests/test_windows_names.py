"""Names that the program gives to files are lawful on Windows and in links, whatever people call things."""

from __future__ import annotations

import ntpath
from pathlib import PureWindowsPath

from cases import each
from hypothesis import given
from hypothesis import strategies as st
from in_memory import view_of

from infinimem.model import Turn
from infinimem.store.evidence import parts
from infinimem.store.spec import is_device, unlawful
from infinimem.strategies.infini.topics import slugify

DEVICES = ("con", "PRN", "Aux", "nul", "COM1", "com9", "lpt0", "LPT¹", "com³", "CON: ", "nul.", "aux!")
NOW = "2025-03-03T12:00:00Z"
WINDOWS = PureWindowsPath("C:/Users/somebody/Documents/memory")


def lawful(doc_id: str) -> bool:
    """Whether Windows gives back the very path that was asked for; by its own rules, not by ours."""
    path = WINDOWS / f"{doc_id}.md"
    names = path.relative_to(WINDOWS).parts
    reserved = getattr(ntpath, "isreserved", None) or (lambda name: PureWindowsPath(name).is_reserved())
    return (
        path.drive == "C:"
        and path.relative_to(WINDOWS).as_posix() == f"{doc_id}.md"
        and not any(reserved(name) for name in names)
        and not any(set(name) & set('<>:"\\|?*') or name[-1] in " ." for name in names)
        and len(str(path)) < 260
    )


@each("title", DEVICES)
def test_no_topic_is_named_for_a_device(title: str) -> None:
    slug = slugify(title)
    assert lawful(f"topics/{slug}"), slug
    assert slug.endswith("-topic")


@given(st.text(max_size=300))
def test_any_title_gives_a_lawful_name(title: str) -> None:
    doc_id = f"topics/{slugify(title)}"
    assert lawful(doc_id)
    assert unlawful(doc_id) == ""


def test_a_session_does_not_take_a_file_that_differs_in_case_only() -> None:
    view = view_of({"evidence/2025-03-03-S1": "A person's own file.\n"})
    (part,) = parts([Turn("Hello", session="s1", time="2025-03-03")], view, 1, NOW)
    assert part.doc_id == "evidence/2025-03-03-s1-2"


@each(
    ("doc_id", "why"),
    [
        ("notes/con", "a device"),
        ("aux/plan", "a device"),
        ("notes/nul.backup", "a device"),
        ("notes/10:30", "':'"),
        ("notes/why?", "'?'"),
        ("a./plan", "end of a folder's name"),
        ("a /plan", "end of a folder's name"),
        ("notes/C#", "'#'"),
        ("notes/a^b", "'^'"),
        ("notes/a[1]", "'['"),
        ("notes/" + "long " * 50 + "name", "longer than 240"),
    ],
)
def test_a_persons_name_that_some_system_refuses_is_told(doc_id: str, why: str) -> None:
    assert why in unlawful(doc_id)


@each("doc_id", ["CURRENT", "notes/Müllers Garten", "notes/v1.2", "notes/todo.", "konto"])
def test_plain_names_are_lawful(doc_id: str) -> None:
    assert unlawful(doc_id) == ""
    assert lawful(doc_id)
    assert not is_device(doc_id)
