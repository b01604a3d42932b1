"""What a run is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from infinimem.llm.base import LLM


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Args:
        data: the official file.
        methods: names with their settings.
        out: folder of the run.
        keeper: the model that keeps memories.
        answerer: the model that reads them and answers.
        judge: the model that grades.
        embedder: name of the run's; None for what each method takes by itself.
        corrections: file of label corrections, which the benchmark has read.
        limit: questions of each category, at most.
        budget: tokens of evidence of an answer.
        retrieval_only: nothing is answered or judged.
        jobs: threads.
        max_tokens: what this start of the run may spend.
        keep: leave the libraries that were made.
        run: number of the run; another one asks the models anew.
    """

    data: Path
    methods: Sequence[str]
    out: Path
    keeper: LLM
    answerer: LLM
    judge: LLM
    embedder: str | None = None
    corrections: Path | None = None
    limit: int | None = None
    budget: int = 4096
    retrieval_only: bool = False
    jobs: int = 1
    max_tokens: int | None = None
    keep: bool = False
    run: int = 1
