"""ask: an answer from memory, with the lines that it rests on. Calls the library's model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

from infinimem.answer import LINE_LENGTH
from infinimem.markdown.characters import clean_text, visible
from infinimem.reader import Reader
from infinimem.tools.tool import Result, Rule, Tool, span


def rows(result: Result) -> Iterator[str]:
    """The answer, then each citation with its place."""
    yield from result["answer"].split("\n")
    for cited in result["citations"]:
        yield f"{cited['doc_id']}:{cited['start_line']}-{cited['end_line']} {cited['text']}"


def tool(memory: Reader) -> Tool:
    """The tool, bound to a library and its model."""

    def ask(question: Annotated[str, Rule(longest=4000)]) -> Result:
        """Answer a question from memory, with citations. Slower than search: a model reads what is found.
        Says so where memory holds nothing about it.

        Args:
            question: a question in plain words
        """
        answer = memory.ask(question)
        citations = [
            {**asdict(cited), "text": span(cited.text, 0, LINE_LENGTH)[0]} for cited in answer.citations
        ]
        return {"answer": visible(clean_text(answer.text)), "citations": citations}

    return Tool.of(ask, rows)
