"""When something happened: nothing that the words do not tell, and what older versions made up is mended."""

from __future__ import annotations

import re

import pytest
from cli_runner import Shell

SAID = "2025-04-15"


def _when(shell: Shell, text: str) -> list[str | None]:
    """The `when` of each line that is drawn from a text said on 15 April 2025."""
    shell("init", ".")
    assert shell("add", text, "--time", SAID).code == 0
    lines = [
        line for line in (shell.library / "CURRENT.md").read_text().split("\n") if line.startswith("- <")
    ]
    return [found[1] if (found := re.search(r"when=([^,>]+)", line)) else None for line in lines]


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "text",
    [
        "We are moving to Kiel in July because Elif got a position",
        "The lease starts in September and we paid the deposit",
        "We paid the deposit and the lease starts in September",
        "Tom told me that the course begins in August",
        "She said she was moving to Rome in June",
        "We bought tickets to the concert on October 6",
        "Mia marries in June, Ben proposed at the lake",
        "We are meeting Jo on Friday because her train was cancelled",
        "The lease we signed starts in September",
        "We want a furnished flat in July",
        "I hope to have finished in September",
        "I want to have learned it in May",
        "Grandpa, who died in March, loved that the garden opens in June",
    ],
)
def test_a_verb_of_another_clause_gives_a_date_no_year(shell: Shell, text: str) -> None:
    """A month or weekday gets no year from a verb that does not govern it."""
    assert _when(shell, text) == [None]


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("We moved to Kiel in July and we like it", "2024-07"),
        ("We will move to Kiel in July because Elif got a position", "2025-07"),
        ("In July, we moved to Kiel", "2024-07"),
        ("She will start in May, as her visa came", "2025-05"),
        ("I started at Nordlicht on March 3 and I will stay", "2025-03-03"),
        ("I need to call Ann on Friday because she called", "2025-04-18"),
    ],
)
def test_the_verb_that_governs_a_date_gives_its_year(shell: Shell, text: str, when: str) -> None:
    """The verb of a date's own clause says which year is meant, whatever other verbs say."""
    assert _when(shell, text) == [when]


@pytest.mark.parametrize(
    "text",
    [
        "I had 3 interviews in a week",
        "We drove 900 km in two days",
        "I will read five books in a month",
        "My last year of school was hard",
    ],
)
def test_how_long_something_took_is_no_date(shell: Shell, text: str) -> None:
    """A length of time, beside a count of events or not, gives no `when`."""
    assert _when(shell, text) == [None]


@pytest.mark.parametrize(
    "kept",
    [
        "We meet on Apr. 3 in the hall by the lake",
        "We meet April 1, 2. Klasse is where we sit",
        "We meet at Mt. Hood on the day after that",
        "We meet the 2. April in the hall by the lake",
        "We meet Gen. Hale in the hall by the lake",
    ],
)
def test_sentences_are_not_cut_at_ordinals_and_abbreviations(shell: Shell, kept: str) -> None:
    """A long message is cut where sentences end, not at ordinals, initials or abbreviations."""
    filler = "word " * (60 - next(at for at, word in enumerate(kept.split(), 1) if word.endswith(".")))
    shell("init", ".")
    assert shell("add", f"The first sentence: {filler[15:-1]}. {kept}.", "--time", SAID).code == 0
    lines = (shell.library / "CURRENT.md").read_text().split("\n")
    assert [line.split("> ", 1)[1] for line in lines if "We meet" in line] == [f"{kept}."]


def test_doctor_takes_out_dates_that_an_older_version_derived(shell: Shell) -> None:
    """`doctor --fix` takes a wrong derived `when` out with a receipt, never a model's or a person's."""
    shell("init", ".")
    texts = [
        "We are moving to Kiel in July because Elif got a position",
        "I had 3 interviews in a week",
        "We moved to Kiel in July and we like it",
    ]
    for text in texts:
        shell("add", text, "--time", SAID)
    current = shell.library / "CURRENT.md"
    wrong = ["when=2024-07", "when=2025-04-21/2025-04-27", "when=2024-07"]
    rows = []
    for row in current.read_text().split("\n"):
        at = next((at for at, text in enumerate(texts) if text in row), None)
        rows.append(row if at is None or "when=" in row else row.replace(">", f",{wrong[at]}>", 1))
    bad = rows[-4:-1]
    of_model = bad[0].replace("seq=2", "seq=902").replace("origin=1", "by=model,origin=1")
    of_person = bad[0].replace("seq=2", "seq=903").replace("source=user", "source=human")
    current.write_text("\n".join([*rows[:-1], of_model, of_person, ""]))
    (shell.library / ".infinimem" / "state.db").unlink()  # as an older version left the lines
    before = current.read_bytes()

    found = [item for item in shell("doctor", "--json").json["findings"] if "when=" in item["what"]]
    assert len(found) == 2
    assert current.read_bytes() == before
    assert shell("doctor", "--fix").code == 0
    lines = current.read_text().split("\n")
    assert [line for line in lines if "when=" in line] == [bad[2], of_model, of_person]
    assert re.sub(r",when=[^,>]+", "", bad[0]) in lines
    receipt = next((shell.library / "journal").glob("*-undate-*.md")).read_text()
    assert bad[0] in receipt
    assert bad[1] in receipt
    assert not [item for item in shell("doctor", "--json").json["findings"] if "when=" in item["what"]]

    assert shell("undo").code == 0
    assert current.read_bytes() == before
