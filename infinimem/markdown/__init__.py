"""Text and model, both ways, without loss: signatures, headers, documents, sections. No I/O."""
