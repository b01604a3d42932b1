"""Which words name the same relation: a question asks for the spouse, a statement says who married whom.

English, by hand; words, no facts. A row is one relation; a word may stand in several. Most rows are the
relations that FactConsolidation's development questions ask for, with their wordings and others: of the words
of those questions that are no names the table knows nine in ten, of LoCoMo's two.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from infinimem.retrieval.tokenizer import tokens

_ROWS = """
citizen citizenship nationality nation national country homeland come hail origin originally
create creation origin originate originating country nation come hail birthplace invent develop rise source
create creator author write writer invent inventor make maker compose composer
found founder founded establish establishment start come origin originate existence
form formed formation found establish origin originate
die died death dead pass away breathe breath last perish
born birth birthplace hail native
marry married marriage spouse partner wife husband wedding
child children son daughter kid offspring parent
sibling brother sister
mother father parent
language speak spoken written write writing sign signed tongue communicate communication document
religion religious faith belief believe denomination affiliated affiliation church follow follower
head government prime minister chief executive premier leader mayor
head state chief president monarch king queen leader representative
chief executive officer ceo
chairperson chairman chairwoman chair head lead
headquarters headquartered headquarter seat base based located location
work working worked workplace employed employer employ employment employee job company organization member
member membership join joined part belong
occupation profession job role title career field work position
position role play played specialty speciality
sport play played game discipline specialize specialise specialty speciality athlete compete
educated education educational school university college institution attend study studied alma graduate
famous fame known notable significant renowned work creation
genre music musical type style kind
broadcast broadcaster original air network television
produce produced producer product manufacturer manufacture make made maker build built company
develop developed developer make made maker
perform performed performer play played portray actor actress sing singer band album song
direct directed director manage managed manager lead head
coach coached trainer train manager
located location place situated lie city town
city town place location
live lives home house address reside settle move moved based
like love enjoy favorite favourite prefer fan
own owner owned belong have buy bought
"""
_NOISE = """
name named person individual one someone something thing current currently country's associated association
relate related connect connected connection serve serves hold holds held recognize recognized known call
called city where particular certain specific responsible respective first formally professionally group
"""


@cache
def relations() -> Mapping[str, frozenset[str]]:
    """Each term of a relation with those that may stand for it."""
    rows = [frozenset(term for word in row.split() for term in tokens(word)) for row in _ROWS.split("\n")]
    terms = frozenset().union(*rows)
    return {term: frozenset().union(*(row for row in rows if term in row)) - {term} for term in terms}


@cache
def noise() -> frozenset[str]:
    """Terms that a question uses to ask, and that need no answer."""
    return frozenset(term for word in _NOISE.split() for term in tokens(word))
