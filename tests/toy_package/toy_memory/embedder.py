"""An embedder: letters counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from infinimem.embedders.base import Kind, unit
from infinimem.settings import EmbedderSettings

if TYPE_CHECKING:
    from infinimem.embedders.base import Matrix


class Letters:
    """See infinimem/embedders/base.py."""

    name = "letters"
    size = 26
    semantic = True

    def __init__(self, settings: EmbedderSettings) -> None:
        self.model = settings.model

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> Matrix:
        """How often each letter stands in a text."""
        import numpy as np

        rows = [[text.lower().count(chr(97 + number)) for number in range(26)] for text in texts]
        return unit(np.array(rows, np.float32).reshape(len(texts), 26))
