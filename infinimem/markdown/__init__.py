"""Text and model, both ways, without loss: signatures, headers, documents, sections. No I/O."""

from infinimem.markdown.document import Document
from infinimem.markdown.header import Header, edit_header, flow, quote, read_header
from infinimem.markdown.scan import Heading, Item
from infinimem.markdown.sections import Partition, partitions
from infinimem.markdown.signature import (
    clean_text,
    format_entry,
    format_seqs,
    one_line,
    parse_entry,
    parse_seqs,
)

__all__ = [
    "Document",
    "Header",
    "Heading",
    "Item",
    "Partition",
    "clean_text",
    "edit_header",
    "flow",
    "format_entry",
    "format_seqs",
    "one_line",
    "parse_entry",
    "parse_seqs",
    "partitions",
    "quote",
    "read_header",
]
