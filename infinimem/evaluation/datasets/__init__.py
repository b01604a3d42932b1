"""Public data sets, read as their official files are, each with its own rules of scoring."""

from infinimem.evaluation.datasets.registry import NAMES, benchmark

__all__ = ["NAMES", "benchmark"]
