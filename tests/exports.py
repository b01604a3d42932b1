"""Exports of other programs, each as its program writes it; people and words are invented.

`EXPORTS` has them by the names that docs/IMPORTS.md gives the programs, with what else tells them apart.
"""

from __future__ import annotations

import copy
import json
import random
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Said = tuple[str, str, str | None, str | None]
"""Role, text, speaker, time."""


@dataclass(frozen=True)
class Export:
    """What a program writes.

    Args:
        format: what it is recognised as.
        files: path -> text or JSON; of several the folder is imported, of one the file.
        turns: role, text, speaker and time of each, in order.
        sessions: their names, each once.
        asked: words of which `search` finds the first turn.
    """

    format: str
    files: dict[str, Any]
    turns: list[Said]
    sessions: list[str]
    asked: str

    def save(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path if len(self.files) == 1 else folder

    def zip(self, path: Path) -> Path:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in self.files.items():
                archive.writestr(name, content if isinstance(content, str) else json.dumps(content))
        return path


def chatgpt_node(ident: str, parent: str | None, role: str, text: str, time: float) -> dict[str, Any]:
    """A message of a conversation of ChatGPT's export."""
    message = {
        "id": ident,
        "author": {"role": role},
        "create_time": time,
        "content": {"content_type": "text", "parts": [text]},
    }
    return {"id": ident, "parent": parent, "children": [], "message": message}


CHATGPT = [
    {
        "title": "Kayaks",
        "conversation_id": "77aa0011-1",
        "create_time": 1714557600.0,
        "current_node": "n2",
        "mapping": {
            "n1": chatgpt_node("n1", None, "user", "Runa wants to rent a kayak in Bergen.", 1714557600.0),
            "n2": chatgpt_node(
                "n2",
                "n1",
                "assistant",
                'At \ue200entity\ue202["organization","Fjord Kajakk","rental"]\ue201 near the harbour.'
                "\ue200cite\ue202turn0search1\ue202turn0search4\ue201 It opens at nine【12†source】, see "
                "https://fjordkajakk.example/rent?utm_source=chatgpt.com",
                1714557660.0,
            ),
        },
    }
]

CLAUDE = [
    {
        "uuid": "c1a0de00-1",
        "name": "Sourdough",
        "created_at": "2025-02-01T08:00:00Z",
        "chat_messages": [
            {
                "uuid": "m-1",
                "sender": "human",
                "text": "My starter is called Blobby.",
                "content": [],
                "created_at": "2025-02-01T08:00:00.5Z",
            },
            {
                "uuid": "m-2",
                "sender": "assistant",
                "content": [{"type": "text", "text": "Feed Blobby twice a day."}],
                "created_at": "2025-02-01T08:00:09Z",
            },
        ],
    }
]

CLAUDE_MEMORIES = [
    {
        "conversations_memory": "**Work context**\n\nIlse teaches chemistry in Gent.\n\n"
        "**Personal context**\n\nShe bakes with a starter called Blobby.\n",
        "project_memories": {"9f8e7d6c-0000": "Ilse writes a book about dyes."},
        "account_uuid": "acc-1",
    }
]

CLAUDE_PROJECTS = [
    {
        "uuid": "9f8e7d6c-0000",
        "name": "Book of dyes",
        "description": "A history of natural dyes.",
        "is_private": True,
        "is_starter_project": False,
        "prompt_template": "Answer in Dutch.",
        "created_at": "2025-01-10T09:00:00+00:00",
        "updated_at": "2025-01-12T09:00:00+00:00",
        "creator": {"uuid": "acc-1", "full_name": "Ilse"},
        "docs": [
            {
                "uuid": "d-1",
                "filename": "madder.md",
                "content": "# Madder\n\n- grows in Zeeland\n",
                "created_at": "2025-01-11T10:00:00+00:00",
            }
        ],
    },
    {"uuid": "s-1", "name": "How to use Claude", "is_starter_project": True, "docs": [], "description": "x"},
]

MEM0: dict[str, Any] = {
    "count": 2,
    "next": None,
    "previous": None,
    "results": [
        {
            "id": "0b1c",
            "memory": "Prefers window seats on trains",
            "hash": "aa",
            "metadata": {"source": "chat"},
            "created_at": "2025-03-01T07:30:00.123456-08:00",
            "updated_at": None,
            "user_id": "tomas",
        },
        {
            "id": "0b1d",
            "memory": "Plays the oboe in Brno",
            "hash": "bb",
            "created_at": "2025-03-01T07:31:00-08:00",
            "updated_at": "2025-03-04T09:00:00-08:00",
            "user_id": "tomas",
        },
    ],
}

MCP_MEMORY = """\
{"type": "entity", "name": "Nadia_Okoye", "entityType": "person", "observations": ["keeps bees in Kent"]}
{"type": "entity", "name": "Hive 4", "entityType": "hive", "observations": []}
{"type": "relation", "from": "Nadia_Okoye", "to": "Hive 4", "relationType": "looks_after"}
"""

BASIC_MEMORY = """\
---
title: Pour Over
type: note
tags:
- coffee
- brewing
permalink: pour-over
---

# Pour Over

## Observations
- [method] Water at 94 degrees gives a clear cup #brewing (tried in May)

## Relations
- relates_to [[Grinder Settings]]
- bought_at [[Rösterei Kolb|Kolb]] (in Ulm)
"""

VAULT = {
    "Anna Berg.md": """\
---
tags: [person, rowing]
born: 1990-03-02
---
## Work
- baker at [[Nordlicht|the Nordlicht bakery]] ^a1b2c3

![[portrait.png]]

## Allergies
- peanuts
  - and [[Nuts#Black]] walnuts ![[rash.jpg|200]]

```dataview
TABLE born FROM #person
```

```bash
[[ -f x ]] && echo "[[kept]]"
```
""",
    "daily/2025-04-06.md": "Rowed with [[Anna Berg]] #rowing\n",
    ".obsidian/app.json": "{}",
}

WHATSAPP_IPHONE = (
    "[31.05.24, 21:58:07] Rowing club: \u200eMessages and calls are end-to-end encrypted.\r\n"
    "\u200e[31.05.24, 21:58:09] Jonas Falk: \u200eimage omitted\r\n"
    "[31.05.24, 21:59:00] Jonas Falk: The boat house key\nis under the blue pot\r\n"
    "[01.06.24, 00:03:12] ~\u202fMette: thanks! ‎<This message was edited>\r\n"
    "[01.06.24, 00:04:00] Mette: \u200eMette changed the group name to Rowing\r\n"
)

WHATSAPP_ANDROID = (
    "5/9/24, 11:59\u202fPM - Messages and calls are end-to-end encrypted. Tap to learn more.\n"
    "5/9/24, 11:59\u202fPM - Priya: The vet moved Biscuit to Tuesday: 4 pm\n"
    "6/1/24, 12:05\u202fAM - Sam Ode: <Media omitted>\n"
    "6/1/24, 12:06\u202fAM - Sam Ode: IMG-20240601-WA0001.jpg (file attached)\nBiscuit asleep\n"
    "6/1/24, 12:07\u202fAM - Priya: This message was deleted\n"
    "6/13/24, 9:00\u202fAM - Sam Ode left\n"
)

TELEGRAM = {
    "name": "Lena Vogt",
    "type": "personal_chat",
    "id": 4711,
    "messages": [
        {
            "id": 1,
            "type": "service",
            "date": "2024-02-01T09:00:00",
            "date_unixtime": "1706778000",
            "action": "x",
        },
        {
            "id": 2,
            "type": "message",
            "date": "2024-02-01T10:00:00",
            "date_unixtime": "1706781600",
            "from": "Lena Vogt",
            "from_id": "user5",
            "text": ["The cello lesson is at ", {"type": "link", "text": "musikhaus.example"}, " now"],
            "text_entities": [],
        },
        {
            "id": 3,
            "type": "message",
            "date": "2024-02-02T10:00:00",
            "date_unixtime": "1706868000",
            "from": "Ken",
            "from_id": "user6",
            "photo": "photos/1.jpg",
            "text": "",
        },
        {
            "id": 4,
            "type": "message",
            "date": "2024-02-02T10:01:00",
            "date_unixtime": "1706868060",
            "from": "Ken",
            "from_id": "user6",
            "forwarded_from": "Musikhaus",
            "text": "Closed on Mondays",
        },
    ],
}

SLACK = {
    "users.json": [
        {
            "id": "U1",
            "team_id": "T1",
            "name": "orla",
            "profile": {"display_name": "Orla", "real_name": "Orla Quinn"},
        },
        {"id": "U2", "team_id": "T1", "name": "wei", "profile": {"display_name": "", "real_name": "Wei Lin"}},
    ],
    "channels.json": [{"id": "C1", "name": "kiln", "created": 1, "creator": "U1", "members": ["U1", "U2"]}],
    "dms.json": [{"id": "D1", "created": 1, "members": ["U1", "U2"]}],
    "integration_logs.json": [],
    "kiln/2024-07-01.json": [
        {"type": "message", "user": "U2", "text": "ok &amp; thanks", "ts": "1719828000.000200"},
        {
            "type": "message",
            "user": "U1",
            "text": "<@U2> the kiln is at <https://kiln.example/log|1240 degrees>, see <#C2|glaze>",
            "ts": "1719824400.000100",
        },
        {"type": "message", "subtype": "channel_join", "user": "U2", "text": "x", "ts": "1719820000.000100"},
    ],
    "D1/2024-07-02.json": [
        {
            "type": "message",
            "user": "U1",
            "text": "Shelf 3 is cracked",
            "ts": "1719907200.000100",
            "files": [{"id": "F1"}],
        },
    ],
}

GEMINI = [
    {
        "header": "Gemini Apps",
        "title": "Gave feedback: thumbs up",
        "time": "2025-05-03T08:00:00.000Z",
        "products": ["Gemini Apps"],
    },
    {
        "header": "Gemini Apps",
        "title": "Prompted how long do I smoke a trout?",
        "titleUrl": "https://gemini.google.com/app",
        "time": "2025-05-02T18:00:00.250Z",
        "products": ["Gemini Apps"],
        "safeHtmlItem": [
            {"html": "<p>About <b>two hours</b>:</p><ul><li>dry it</li><li>keep 70 &deg;C</li></ul>"}
        ],
    },
    {
        "header": "Gemini Apps",
        "title": "Prompted my trout comes from Silkeborg",
        "time": "2025-05-01T18:00:00Z",
        "products": ["Gemini Apps"],
    },
]

MBOX = """\
From orla@example.org Mon Jul  1 10:00:00 2024
From: Orla Quinn <orla@example.org>
To: wei@example.org
Subject: =?utf-8?q?Glaze_caf=C3=A9?=
Date: Mon, 1 Jul 2024 10:00:00 +0200
Message-ID: <a1@example.org>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: multipart/alternative; boundary="c"

--c
Content-Type: text/plain; charset="utf-8"
Content-Transfer-Encoding: quoted-printable

The celadon needs 3=20percent iron.
>From now on we fire on Fridays.
On Monday I wrote: more to come.

--=20
Orla Quinn
Pottery Lane 4
--c
Content-Type: text/html

<p>The celadon</p>
--c--
--b
Content-Type: application/pdf; name="recipe.pdf"
Content-Disposition: attachment; filename="recipe.pdf"
Content-Transfer-Encoding: base64

JVBERg==
--b--

From wei@example.org Mon Jul  1 11:00:00 2024
From: wei@example.org
Subject: Re: =?utf-8?q?Glaze_caf=C3=A9?=
Date: Mon, 1 Jul 2024 11:00:00 +0200
Message-ID: <a2@example.org>
In-Reply-To: <a1@example.org>
References: <a1@example.org>
Content-Type: text/html; charset="iso-8859-1"

<html><head><style>p {}</style></head><body><p>Fridays are fine.<br>Wei</p>
<div class="gmail_quote">On Mon, Orla wrote:<blockquote>The celadon</blockquote></div></body></html>
"""

EML = """\
Return-Path: <bo@example.org>
From: Bo <bo@example.org>
To: ada@example.org
Subject: Re: Ladder
Date: Tue, 2 Jul 2024 09:30:00 -0000
Message-ID: <b2@example.org>
In-Reply-To: <b1@example.org>
Content-Type: text/plain; charset=utf-8

The ladder is back in your shed.

On Mon, 1 Jul 2024 at 08:00, Ada Lind <ada@example.org>
wrote:

> Where is the ladder?
> Ada
It was at my sister's.

Sent from my phone
"""

FIRED = "The celadon needs 3 percent iron.\nFrom now on we fire on Fridays.\nOn Monday I wrote: more to come."

EXPORTS: dict[str, Export] = {
    "ChatGPT": Export(
        "chatgpt",
        {"conversations.json": CHATGPT},
        [
            ("user", "Runa wants to rent a kayak in Bergen.", None, "2024-05-01T10:00:00Z"),
            (
                "assistant",
                "At Fjord Kajakk near the harbour. It opens at nine, see https://fjordkajakk.example/rent",
                None,
                "2024-05-01T10:01:00Z",
            ),
        ],
        ["Kayaks 77aa0011"],
        "kayak Bergen",
    ),
    "Claude": Export(
        "claude",
        {"conversations.json": CLAUDE},
        [
            ("user", "My starter is called Blobby.", None, "2025-02-01T08:00:00Z"),
            ("assistant", "Feed Blobby twice a day.", None, "2025-02-01T08:00:09Z"),
        ],
        ["Sourdough c1a0de00"],
        "starter called",
    ),
    "Claude, memories": Export(
        "claude",
        {"memories.json": CLAUDE_MEMORIES},
        [
            ("assistant", "Work context: Ilse teaches chemistry in Gent.", None, None),
            ("assistant", "Personal context: She bakes with a starter called Blobby.", None, None),
            ("assistant", "Ilse writes a book about dyes.", None, None),
        ],
        ["Claude's memory", "Claude's memory of project 9f8e7d6c"],
        "chemistry Gent",
    ),
    "Claude, projects": Export(
        "claude",
        {"projects.json": CLAUDE_PROJECTS},
        [
            ("user", "A history of natural dyes.", None, "2025-01-10T09:00:00Z"),
            ("user", "Answer in Dutch.", None, "2025-01-10T09:00:00Z"),
            ("user", "madder: grows in Zeeland", None, "2025-01-11T10:00:00Z"),
        ],
        ["Book of dyes 9f8e7d6c"],
        "natural dyes",
    ),
    "mem0": Export(
        "mem0",
        {"mem0.json": MEM0},
        [
            ("assistant", "Prefers window seats on trains", None, "2025-03-01T07:30:00-08:00"),
            ("assistant", "Plays the oboe in Brno", None, "2025-03-04T09:00:00-08:00"),
        ],
        ["mem0 tomas"],
        "window seats",
    ),
    "MCP memory server": Export(
        "mcp-memory",
        {"memory.jsonl": MCP_MEMORY},
        [
            ("assistant", "Nadia Okoye: keeps bees in Kent", None, None),
            ("assistant", "Hive 4 (hive)", None, None),
            ("assistant", "Nadia Okoye looks after Hive 4", None, None),
        ],
        ["memory"],
        "bees Kent",
    ),
    "basic-memory": Export(
        "markdown",
        {"pour-over.md": BASIC_MEMORY},
        [
            ("user", "Pour Over: tags: coffee, brewing", None, None),
            (
                "user",
                "Pour Over: [method] Water at 94 degrees gives a clear cup #brewing (tried in May)",
                None,
                None,
            ),
            ("user", "Pour Over relates to Grinder Settings", None, None),
            ("user", "Pour Over bought at Kolb (in Ulm)", None, None),
        ],
        ["pour-over"],
        "coffee brewing",
    ),
    "Obsidian": Export(
        "markdown",
        VAULT,
        [
            ("user", "Anna Berg: tags: person, rowing; born: 1990-03-02", None, None),
            ("user", "Anna Berg › Work: baker at the Nordlicht bakery", None, None),
            ("user", "Anna Berg › Allergies: peanuts\n  - and Nuts > Black walnuts [rash.jpg]", None, None),
            ("user", 'Anna Berg › Allergies:\n```bash\n[[ -f x ]] && echo "[[kept]]"\n```', None, None),
            ("user", "Rowed with Anna Berg #rowing", None, "2025-04-06"),
        ],
        ["Anna Berg", "daily/2025-04-06"],
        "Anna Berg born",
    ),
    "WhatsApp, iPhone": Export(
        "whatsapp",
        {"_chat.txt": WHATSAPP_IPHONE},
        [
            ("user", "The boat house key\nis under the blue pot", "Jonas Falk", "2024-05-31T21:59:00"),
            ("user", "thanks!", "Mette", "2024-06-01T00:03:12"),
        ],
        ["Rowing club 2024-05-31", "Rowing club 2024-06-01"],
        "boat house key",
    ),
    "WhatsApp, Android": Export(
        "whatsapp",
        {"WhatsApp Chat with Biscuit's people.txt": WHATSAPP_ANDROID},
        [
            ("user", "The vet moved Biscuit to Tuesday: 4 pm", "Priya", "2024-05-09T23:59:00"),
            ("user", "Biscuit asleep", "Sam Ode", "2024-06-01T00:06:00"),
        ],
        ["Biscuit's people 2024-05-09", "Biscuit's people 2024-06-01"],
        "vet moved",
    ),
    "Telegram": Export(
        "telegram",
        {"result.json": TELEGRAM},
        [
            ("user", "The cello lesson is at musikhaus.example now", "Lena Vogt", "2024-02-01T10:00:00Z"),
            ("user", "[forwarded from Musikhaus] Closed on Mondays", "Ken", "2024-02-02T10:01:00Z"),
        ],
        ["Lena Vogt 2024-02-01", "Lena Vogt 2024-02-02"],
        "cello lesson",
    ),
    "Slack": Export(
        "slack",
        SLACK,
        [
            ("user", "Shelf 3 is cracked", "Orla", "2024-07-02T08:00:00Z"),
            (
                "user",
                "@Wei Lin the kiln is at 1240 degrees (https://kiln.example/log), see #glaze",
                "Orla",
                "2024-07-01T09:00:00Z",
            ),
            ("user", "ok & thanks", "Wei Lin", "2024-07-01T10:00:00Z"),
        ],
        ["Orla, Wei Lin 2024-07-02", "#kiln 2024-07-01"],
        "Shelf cracked",
    ),
    "Gemini": Export(
        "gemini",
        {"My Activity.json": GEMINI},
        [
            ("user", "my trout comes from Silkeborg", None, "2025-05-01T18:00:00Z"),
            ("user", "how long do I smoke a trout?", None, "2025-05-02T18:00:00Z"),
            ("assistant", "About two hours:\n\n- dry it\n- keep 70 °C", None, "2025-05-02T18:00:00Z"),
        ],
        ["Gemini 2025-05-01", "Gemini 2025-05-02"],
        "trout Silkeborg",
    ),
    "mail, mbox": Export(
        "mail",
        {"pottery.mbox": MBOX},
        [
            (
                "user",
                f"Glaze café: {FIRED} [attached: recipe.pdf]",
                "Orla Quinn",
                "2024-07-01T10:00:00+02:00",
            ),
            ("user", "Fridays are fine.\nWei", "wei@example.org", "2024-07-01T11:00:00+02:00"),
        ],
        ["Glaze café 2790adab"],
        "celadon iron",
    ),
    "mail, eml": Export(
        "mail",
        {"ladder.eml": EML},
        [
            (
                "user",
                "The ladder is back in your shed.\n\nIt was at my sister's.",
                "Bo",
                "2024-07-02T09:30:00Z",
            )
        ],
        ["Ladder 9d6d4b3e"],
        "ladder shed",
    ),
    "anything else": Export(
        "openai",
        {"chat.jsonl": '{"role": "user", "content": "My bike is a red Pashley.", "time": "2025-01-01"}\n'},
        [("user", "My bike is a red Pashley.", None, "2025-01-01")],
        ["chat"],
        "red Pashley",
    ),
    "notes and journals": Export(
        "markdown",
        {"plants.md": "# Plants\n\n## Balcony\n\n- two figs since 2019\n"},
        [("user", "Plants › Balcony: two figs since 2019", None, None)],
        ["plants"],
        "two figs",
    ),
}


ODD: list[Any] = [
    None, True, -1, 2**70, 1e400, "", "text", "\ud800", [], {}, [None], [[]], ["a", {"b": 1}],
    {"type": None}, {"type": []}, {"text": {}}, [{"type": "text", "text": None}],
]  # fmt: skip


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*way, key)
        yield from places(item, (*way, key))


def altered(content: Any) -> Iterator[Any]:
    """The content with another value in each of its places in turn, that nobody expects there."""
    dice = random.Random(8)
    for way in places(content):
        changed = copy.deepcopy(content)
        holder = changed
        for key in way[:-1]:
            holder = holder[key]
        holder[way[-1]] = copy.deepcopy(dice.choice(ODD))
        yield changed
