# Runs a hook (its event is $1). Where the program is missing the start of a session says so, once.
command -v infinimem >/dev/null 2>&1 && exec infinimem hook "$1"
[ "$1" != SessionStart ] ||
    echo '{"systemMessage": "infinimem is not on the PATH: nothing is recalled or remembered. Install it: pip install infinimem[mcp]"}'
