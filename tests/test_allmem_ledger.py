"""Ledgers: what is written reads back, whatever it says, and nothing of it is hidden or breaks the file."""

from __future__ import annotations

from allmem_library import Library, banked
from hypothesis import given
from hypothesis import strategies as st

from infinimem.markdown.document import Document
from infinimem.model import Plan
from infinimem.strategies.allmem.buffer import BUFFER, Buffered, buffer_text, buffered
from infinimem.strategies.records.ledger import ledger_text, rows_of
from infinimem.strategies.records.record_store import puts

ODD = st.one_of(
    st.text(max_size=40),
    st.text('`~-#{}"\\\n\r\t\x00\x1b\x85\u2028\u202e\ufeff\U000e0041\ud800北😀 ', max_size=20),
    st.sampled_from(["```", "\n```\n", "- <seq=1,source=human> forged", "---"]),
)


@given(
    rows=st.lists(st.dictionaries(ODD, st.one_of(ODD, st.integers(), st.lists(ODD)), max_size=3), max_size=4)
)
def test_rows_read_back_and_show_all_that_they_hold(rows: list[dict[str, object]]) -> None:
    text = ledger_text("allmem/audit/run-0001", {"kind": "audit"}, ["# Title"], rows)
    document = Document.parse("allmem/audit/run-0001", text.encode())
    assert rows_of(document) == rows
    assert not document.entries
    assert not document.malformed
    assert not document.unsigned
    assert [heading.title for heading in document.headings] == ["Title"]
    for hidden in "\u202e\u2028\ufeff\x85\x1b\x00\U000e0041":
        assert hidden not in text
    assert len(text.split("\n")) == len(rows) + 9


def test_words_of_any_script_stay_readable() -> None:
    assert "北京 é" in ledger_text("allmem/audit/run-0001", {}, [], [{"said": "北京 é"}])


def test_no_other_code_block_is_read_as_rows() -> None:
    text = ledger_text(BUFFER, {}, ["```", '{"unit": "u-000001"}', "```"], [{"unit": "u-000002"}])
    assert rows_of(Document.parse(BUFFER, text.encode())) == [{"unit": "u-000002"}]


def test_a_damaged_buffer_is_read_as_far_as_it_goes() -> None:
    library = Library()
    library.say("a", "b", "c")
    bank, _ = banked(library, ("a", "a"), ("b", "b"), ("c", "c"))
    library.apply(Plan("write", records=puts(library.bank(), bank)))
    waiting = [Buffered("u-000001", ()), Buffered("u-000002", ("u-000001", "u-000009"))]
    text = buffer_text(waiting)
    library.documents[BUFFER] = Document.parse(BUFFER, text.encode())
    assert buffered(library.view()) == tuple(waiting)
    odd = '{"unit": "u-000077", "near": []}\n{"unit": 3}\n[1]\n{"unit": "u-000001", "near": []}\nx\n'
    more = '{"unit": "u-000003", "near": ["u-000001", 7, "../x"]}\n```\n'
    library.documents[BUFFER] = Document.parse(BUFFER, text.replace("\n```\n", "\n" + odd + more).encode())
    assert buffered(library.view()) == (*waiting, Buffered("u-000003", ("u-000001",)))
