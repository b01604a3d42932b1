"""What an agent program's hooks do: put memory before a model, and remember what was said.

A hook is waited for, so what it imports is little. `answer` is the light half, in the hook's own process;
reading and writing a library is done by processes of their own (`__main__.py`): one that is kept warm and
answers through a socket, one for each session that is to be remembered.
"""
