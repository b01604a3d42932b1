"""Which rules answer which task. No rule calls another client or reads a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from infinimem.llm.offline.answer import answer
from infinimem.llm.offline.describe import describe, merge_units, split_unit, update_unit
from infinimem.llm.offline.diagnose import diagnose
from infinimem.llm.offline.extract import extract
from infinimem.llm.offline.filing import layout, merge, plan, select
from infinimem.llm.offline.judge import lenient, strict
from infinimem.llm.offline.step import step
from infinimem.llm.offline.topics import rewrite

Rule = Callable[[Mapping[str, Any]], dict[str, Any]]

RULES: Mapping[str, Rule] = {
    "extract": extract,
    "rewrite": rewrite,
    "plan": plan,
    "layout": layout,
    "merge": merge,
    "describe": describe,
    "diagnose": diagnose,
    "split_unit": split_unit,
    "merge_units": merge_units,
    "update_unit": update_unit,
    "select": select,
    "step": step,
    "answer": answer,
    "judge_strict": strict,
    "judge_lenient": lenient,
}
