"""Wording of the language tasks, one Markdown template a task, named for it (llm/tasks.py).

What stands above the first line `---` is the instruction, what stands below it the material.
`{{name}}` is replaced by the task's variable of that name; nothing else is special.
"""
