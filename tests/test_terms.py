"""The tokenizer: words, accents, scripts without spaces, numbers and dates."""

from __future__ import annotations

from cases import each
from hypothesis import given
from hypothesis import strategies as st
from in_memory import view_of

from infinimem.index.search import searcher
from infinimem.settings import SearchSettings, Settings
from infinimem.terms import STOP_WORDS, analyzer, fold, query_terms, tokens


@each(
    ("text", "expected"),
    [
        ("Painted painting PAINTS", ["paint", "paint", "paint"]),
        ("went to see children", ["go", "to", "see", "child"]),
        ("Caroline's easels", ["carolin", "easel"]),
        ("O'Brien\u2019s caf\u00e9, nai\u0308ve", ["obrien", "cafe", "naiv"]),
        ("don't can't she'll", ["do", "can", "she"]),
        ("read_lines", ["read", "line"]),
        ("STRASSE Stra\u00dfe", ["strass", "strass"]),
        ("\ufb01nance", ["financ"]),
        ("", []),
        ("!?\u2026 \u2192", []),
        ("fig\U0001f600 \U0001f44d\U0001f3fd", ["fig", "\U0001f600", "\U0001f44d"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@each(
    ("text", "expected"),
    [
        ("2023-05-08", ["2023-05-08", "2023", "5", "8"]),
        ("8th May 2023", ["8", "may", "2023"]),
        ("14:05", ["14:05", "14", "5"]),
        ("1,200 apples", ["1200", "appl"]),
        ("3.11.2", ["3.11.2", "3", "11", "2"]),
        ("007", ["7"]),
    ],
)
def test_numbers_and_dates_are_kept_whole_and_in_parts(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_scripts_without_spaces_become_pairs() -> None:
    assert tokens("北京大学 x") == ["北", "京", "大", "学", "北京", "京大", "大学", "x"]
    assert query_terms("北京大学") == ["北京", "京大", "大学"]
    assert query_terms("水") == ["水"], "a query of one character is looked for as it is"
    assert set(query_terms("喜欢咖啡")) & set(tokens("她喜欢咖啡吗")) == {"喜欢", "欢咖", "咖啡"}
    assert "어서" not in query_terms("한국어 서울"), "a space ends a pair"


def test_stop_words_leave_queries_but_not_the_index() -> None:
    assert query_terms("Where did Ana move to?") == ["ana", "move"]
    assert tokens("the cat") == ["the", "cat"]
    assert "may" not in STOP_WORDS, "it is a month"


@given(st.text(max_size=60))
def test_what_is_indexed_can_be_asked_for(text: str) -> None:
    assert set(query_terms(text)) <= set(tokens(text))
    assert tokens(text) == tokens(text.upper().lower()) or not text.isascii()


def test_where_someone_lives_is_found_by_where_they_live() -> None:
    assert tokens("lives") == tokens("living") == tokens("live") != tokens("life")


def test_a_run_of_combining_marks_takes_no_square_of_time() -> None:
    marks = "\u0301\u0323\u05b0" * 50_000
    assert fold(f"Cafe{marks} noir").startswith("cafe")
    assert tokens(f"{marks} cafe\u0301 noir")[-2:] == ["cafe", "noir"]
    assert fold("Résumé " * 100) == "resume " * 100


def test_another_language_has_its_own_endings_and_stop_words() -> None:
    german = analyzer("german")
    assert german.tokens("Häuser") == german.tokens("Häusern") != tokens("Häuser")
    assert german.query_terms("Wo ist das Haus für den Hund?") == german.tokens("Haus Hund")
    french = analyzer("french")
    assert french.query_terms("Où est l'eau de la rivière ?")[-2:] == french.tokens("eau rivières")
    assert analyzer("turkish").query_terms("ve kitaplar") == analyzer("turkish").tokens("ve kitap")
    assert german.tokens("went") != german.tokens("go"), "irregular forms are English"


def test_a_library_is_searched_in_its_own_language() -> None:
    files = {"a": "Die Häuser der Stadt\n", "b": "Die Stadt\n"}
    found = searcher(view_of(files, Settings(search=SearchSettings(language="german")))).blocks("Haus")
    assert [item.doc_id for item in found] == ["a"]
    assert searcher(view_of(files)).blocks("Haus") == []


def test_compounds_are_found_however_they_are_written() -> None:
    view = view_of(
        {
            "notes/a": "We planned a road trip to Faro.\n",
            "notes/b": "All our roadtrips were long.\n",
            "notes/c": "The data base was slow.\n",
            "notes/d": "A database of birds.\n",
            "notes/e": "My e-mail is broken, 1,200 unread.\n",
            "notes/f": "A trip by road, the base of all data.\n",
            "notes/g": "The trip cost 200.\n",
        },
        initialised=False,
    )

    def found(query: str) -> set[str]:
        return {block.doc_id[-1] for block in searcher(view).blocks(query)}

    assert found("roadtrips") == found("roadtrip") == {"a", "b"}, "and no other trip"
    assert found("road-trips") == found("road trip") == {"a", "b", "f", "g"}
    assert found("database") == {"c", "d"}
    assert found("data base") == {"c", "d", "f"}
    assert found("email") == found("e-mails") == {"e"}
    assert found("1200") == found("1,200") == {"e"}
    assert found("another") == found("Abba") == set(), "no word is cut into stop words"
