"""Faces for other programs' own interfaces; each needs the extra of its name."""
