"""Pages that look at a memory from aside: its conversations, its map, what hooks would recall of it."""

from __future__ import annotations

from itertools import combinations
from math import cos, pi, sin
from pathlib import Path
from typing import Any

from infinimem import tokens
from infinimem.hooks.event import Event
from infinimem.hooks.recall import Recall, said
from infinimem.results import recall_json
from infinimem.store.render import topic_names
from infinimem.store.spec import EVIDENCE
from infinimem.store.view import View
from infinimem.strategies.base import Linked
from infinimem.user_folders import is_mine
from infinimem.web.prose import sessions
from infinimem.web.reading import LISTED, told
from infinimem.web.site import Asked, Page

NODES, LINKS = 40, 120
"""Of a map, at most: those with most in common."""
WIDTH, RADIUS = 900, 270
"""Of the drawing, in its own units."""


def conversations(asked: Asked) -> Page:
    """What was said, by session, the newest first, and how much of it was kept."""
    view, start = asked.reader.view, asked.start
    ids = view.owned(EVIDENCE)[::-1]
    found = told(asked.reader.tools.list_docs(offset=start - 1, limit=LISTED, scope="evidence"))
    shown = {"start": start, "step": LISTED, "count": len(ids)}
    rows = list(sessions(view, ids[start - 1 : start - 1 + LISTED]))
    return Page("conversations.html", found, {**shown, "sessions": rows})


def recall(asked: Asked) -> Page:
    """What hooks would put before a model for a prompt in a folder; nothing counts as shown by it."""
    prompt, folder = asked.query.get("prompt", ""), asked.query.get("cwd", "") or str(Path.cwd())
    recalled = Recall(asked.memory)
    if prompt:
        text = recalled.text(Event("UserPromptSubmit", cwd=folder, prompt=prompt))
        hits = recalled.near(said(prompt), folder)
    else:
        text = recalled.text(Event("SessionStart", cwd=folder))
        hits = [hit for part in recalled.opening(folder) for hit in part]
    trusted = is_mine(asked.memory.library.root)
    shown = {"prompt": prompt, "folder": folder, "hits": hits, "count": tokens.count(text)}
    return Page("recall.html", recall_json(text, hits), {**shown, "trusted": trusted})


def graph(asked: Asked) -> Page:
    """What belongs together: the links that the strategy keeps, else topics by the names that they share."""
    memory = asked.memory
    if isinstance(memory.strategy, Linked):
        about = asked.query.get("about") or None
        data = memory.strategy.graph(memory.view, about, 2).data()
    else:
        data = _topics(memory.view)
    places = {node["id"]: _place(at, len(data["nodes"])) for at, node in enumerate(data["nodes"])}
    lines = [{**link, "a": places[link["from"]], "b": places[link["to"]]} for link in data["links"]]
    names = {node["id"]: node["label"] for node in data["nodes"]}
    near: dict[str, list[dict[str, Any]]] = {}
    for link in data["links"]:
        near.setdefault(link["from"], []).append({**link, "other": link["to"]})
        near.setdefault(link["to"], []).append({**link, "other": link["from"]})
    drawing = {"places": places, "lines": lines, "width": WIDTH, "height": 2 * RADIUS + 120}
    return Page("map.html", data, {**drawing, "names": names, "near": near})


def _topics(view: View) -> dict[str, Any]:
    """Topics and the names that two of them share, in the shape of the command `graph`."""
    found = view.derived(topic_names)
    most = max(2, len(found.names) // 2)
    shared: dict[tuple[str, str], list[str]] = {}
    for name, topics in sorted(found.topics.items()):
        if 2 <= len(topics) <= most:
            for pair in combinations(sorted(topics)[:NODES], 2):
                shared.setdefault(pair, []).append(name)
    best = sorted(shared.items(), key=lambda item: (-len(item[1]), item[0]))[:LINKS]
    ids = list(dict.fromkeys(doc_id for pair, _ in best for doc_id in pair))[:NODES]
    ids += [doc_id for doc_id in sorted(found.names) if doc_id not in ids][: NODES - len(ids)]
    nodes = [
        {"id": one, "label": view.row(one).title or one, "visible": True, "hop": 0} for one in sorted(ids)
    ]
    links = [
        {"from": pair[0], "to": pair[1], "type": ", ".join(names), "weight": len(names)}
        for pair, names in best
        if set(pair) <= set(ids)
    ]
    return {"root": "", "nodes": nodes, "links": links}


def _place(at: int, count: int) -> dict[str, Any]:
    """On a circle, with the label on the outside."""
    angle = 2 * pi * at / max(count, 1) - pi / 2
    x, y = cos(angle), sin(angle)
    return {
        "x": round(WIDTH / 2 + RADIUS * x, 1),
        "y": round(RADIUS + 60 + RADIUS * y, 1),
        "tx": round(WIDTH / 2 + (RADIUS + 12) * x, 1),
        "ty": round(RADIUS + 64 + (RADIUS + 12) * y, 1),
        "anchor": "start" if x > 0.1 else "end" if x < -0.1 else "middle",
    }
