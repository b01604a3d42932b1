"""Language models behind one protocol: tasks, prompts, clients."""
