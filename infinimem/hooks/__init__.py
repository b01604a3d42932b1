"""What an agent program's hooks do: put memory before a model, and remember what was said."""
