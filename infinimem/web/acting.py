"""What changes the library or spends tokens. It is reached by forms alone, and a form by a page of ours."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from infinimem.errors import UsageError
from infinimem.operations.forget.forget import Forgotten
from infinimem.operations.provenance import recorded
from infinimem.results import answer_json, forgotten_json, going_json
from infinimem.web.prose import fact
from infinimem.web.site import Asked, Moved, Page, number, seq_of


def undo(asked: Asked) -> Moved:
    """Take a receipt back; then show the receipt of that."""
    if not (name := asked.form.get("receipt", "")):  # the newest may be another than was looked at
        raise UsageError("say which receipt: a number")
    done = asked.memory.undo(name, "together" in asked.form)
    return Moved(f"/receipt/{done[-1].number}")


def decide(asked: Asked) -> Moved:
    """Approve or reject an item of the review, or a line of one."""
    wanted, word = [asked.form.get("item", "")], asked.form.get("word", "")
    if word not in ("approve", "reject"):
        raise UsageError("say approve or reject")
    asked.memory.decide(**{word: wanted})
    return Moved("/review")


def forgetting(asked: Asked) -> Page:
    """What would be forgotten with a line, exactly."""
    return _preview(asked, asked.query.get("seq", ""))


def forget(asked: Asked) -> Page:
    """Forget what was shown, if the words are typed and it is still the same that would go."""
    name = asked.form.get("seq", "")
    preview = _preview(asked, name)
    if asked.form.get("shown") != preview.shown["digest"]:
        return _preview(asked, name, "Something changed meanwhile: this is what would go now.")
    if asked.form.get("typed", "").strip() != preview.shown["words"]:
        return _preview(asked, name, f"Nothing was forgotten: type “{preview.shown['words']}” to do it.")
    done = asked.memory.forget([seq_of(name)])
    return Page("forgotten.html", forgotten_json(done), {"done": done})


def _preview(asked: Asked, name: str, said: str = "") -> Page:
    going = asked.memory.forget([seq_of(name)], dry_run=True)
    shown = {"seq": name, "said": said, "words": f"forget {name}", "digest": _digest(going)}
    return Page("forgetting.html", going_json(going), shown)


def _digest(going: Forgotten) -> str:
    """By which a preview is recognised: what would go, and from where."""
    return sha256(repr((going.rows, going.files, going.records)).encode()).hexdigest()


def asking(asked: Asked) -> Page:
    """The form of a question; to ask it takes a POST, since that may spend tokens."""
    return Page("ask.html", {"answer": None}, _question(asked, asked.query.get("q", ""), asked.moment))


def ask(asked: Asked) -> Page:
    """An answer with its evidence, of now or as of a day."""
    question, days = asked.form.get("q", ""), moments(asked)
    at = number(asked.form.get("at", ""), len(days))
    moment = days[at] if at < len(days) else ""
    reader = asked.site.reader(moment)
    found = reader.ask(question)
    view = reader.view
    cited = [(one, [fact(p) for seq in one.seqs if (p := view.entry(seq))]) for one in found.citations]
    shown = {
        **_question(asked, question, moment),
        "found": found,
        "cited": cited,
        "quoted": asked.memory.llm.name == "offline",
    }
    return Page("ask.html", answer_json(found), shown)


def moments(asked: Asked) -> list[str]:
    """Days at which the library stood otherwise than on the next one, the oldest first."""
    return sorted({one.time[:10] for one in recorded(asked.memory.view).receipts})


def _question(asked: Asked, question: str, moment: str) -> dict[str, Any]:
    days = moments(asked)
    at = days.index(moment) if moment in days else len(days)
    return {"question": question, "moments": days, "at": at, "found": None, "day_asked": moment}
