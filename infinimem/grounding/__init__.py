"""Do the words of a line stand in what it cites? Negation, names and numbers, duplicates, dates. English is
known here, and above in the offline rules; nowhere below."""
