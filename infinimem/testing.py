"""Test doubles for code that uses infinimem."""

from __future__ import annotations

from infinimem.llm.scripted import Call, ScriptedLLM

__all__ = ["Call", "ScriptedLLM"]
