"""Messages that say nothing: greetings, thanks, acknowledgements. Conservative: in doubt a message is kept.

A message is a filler when each of its clauses is one of the phrases below, with or without the name of
somebody who takes part. Any other word, a number or another name keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from infinimem.llm.offline.lexicon import short_names
from infinimem.terms import fold

_GOOD = (
    r"(?:good|great|nice|lovely|awesome|amazing|wonderful|fantastic|perfect|excellent|cool|sweet|brilliant|fine"
    r"|well)"
)
_SO = r"(?:(?:so|very|really|super|pretty|such|all|just|too) )*"
# One phrase a line; an indented line goes on with the one above.
_PHRASES = rf"""
(?:hey|hi|hello|hiya|howdy|yo|greetings|welcome back|welcome)(?: there| again| everyone| all)?
good (?:morning|afternoon|evening|night|day)
(?:it'?s |it is )?{_SO}{_GOOD} (?:to see|seeing|to hear from|hearing from|to meet|meeting|
  talking to|to talk to|chatting with|to chat with) (?:you|ya)(?: again| too)?
long time no (?:see|talk|chat)
how(?:'s| is| are) (?:it going|it|everything|everything going|life|things|things going|you|u|ya|
  you doing|you all|your day|your day going|your week|your week going|you and yours)(?: today| doing|
   these days| lately)?
how(?: have|'ve) (?:you|things|ya) been(?: doing| going| lately| recently)?
what'?s (?:up|new|going on|happening)(?: with you| today)?
(?:anything|something) new(?: with you)?
(?:i'?m |i am |i'?ve been |we'?re |all |doing |things are )?(?:doing )?{_SO}(?:good|great|fine|okay|
  ok|well|not bad|alright)(?: here| too)?
(?:and )?(?:you|yourself|how about you|what about you)
{_SO}(?:thanks|thank you|thankyou|thx|ty|cheers|much appreciated|i appreciate it|appreciate it|
  appreciated|many thanks|i'?m (?:so )?grateful)(?: again| so much| so very much| very much| a lot|
   a ton| a bunch| a million| everyone| all| for asking| for that| for everything| for listening|
   for your help| for the help| for your support| for the support| for your kind words|
   for the kind words| for being there)*
(?:you'?re |you are )?(?:very |most |so )?welcome
(?:no problem|np|no worries|my pleasure|anytime|don'?t mention it|glad (?:to help|i could help|
  to hear it|to hear that|you like it)|happy to help|it was nothing)
(?:your|those|these) (?:kind )?words mean (?:a lot|so much|the world)(?: to me)?
(?:that )?means (?:a lot|so much|the world)(?: to me)?
(?:ok|okay|k|kk|alright|all right|right|sure|sure thing|got it|gotcha|understood|i see|i understand|
  makes sense|that makes sense|noted|will do|fair enough|deal|sounds {_SO}{_GOOD}|
  sounds like a plan)(?: then| now)?
(?:{_SO}{_GOOD}|wow|whoa|oh|ah|aha|ooh|oops|aww?|yay|woohoo|hm+|mm+|(?:ha){{2,}}|(?:he){{2,}}|lol|
  lmao|omg|oh no|oh my|oh wow|no way|well|yum|phew)
(?:that(?:'s| is| was| sounds)|it(?:'s| is| was)|this is|what|how) {_SO}{_GOOD}(?: news| to hear|
   of you)?
(?:i'?m |i am )?(?:so |very |really |super )*(?:glad|happy|sorry|thrilled|
  excited) (?:to hear (?:that|it|this)|for you|about that|you think so)
(?:yes|yeah|yep|yup|ya|yea|no|nope|nah|totally|absolutely|definitely|exactly|indeed|of course|
  for sure|certainly|agreed|true|so true|very true|you bet|same|same here|me too|me neither|you too|
  likewise|right on|i know|i know right)
(?:i )?{_SO}(?:totally |completely |fully |definitely |couldn'?t |100 )*agree(?: with you|
   with that| more)?
you(?:'re| are) (?:so |absolutely |totally |very )?(?:right|kind|sweet|nice|too kind|the best|
  amazing|awesome)
(?:congrats|congratulations|well done|good job|great job|nice work|way to go|good for you|good luck|
  best of luck|fingers crossed|cheers)(?: again| on that| with that| with everything)?
(?:keep it up|keep up the (?:good|great|amazing|awesome) work|keep going|you(?:'ve)? got this|
  hang in there|stay strong|i'?m (?:so |very |really )*proud of you)
(?:bye|bye bye|goodbye|cya|farewell|later|ciao|see (?:you|ya|u)|until next time|till next time|
  take care|take care of yourself|sleep well|good night|rest well)(?: later| soon| then| tomorrow|
   around| again| for now)*
(?:i'?ll |we'?ll )?(?:talk|speak|chat|catch)(?: to| with)?(?: you| ya)?(?: up)?(?: later| soon|
   again| then| tomorrow)+
have (?:a|an) (?:{_GOOD} )?(?:one|day|night|evening|weekend|week|time|rest of your day)(?: too)?
(?:enjoy|have fun)(?: your day| your evening| your weekend| it| yourself)?
(?:please|sorry|my apologies|i'?m sorry|excuse me|pardon|my bad)
(?:i )?hope (?:you(?:'re| are)|all is|everything is|everything'?s) {_SO}(?:good|great|fine|okay|ok|
  well|doing well|doing great)
(?:i )?can'?t wait
let'?s (?:do it|go|do this)
"""
_YES_NO = re.compile(
    r"(?:yes|yeah|yep|yup|ya|yea|no|nope|nah|totally|absolutely|definitely|exactly|indeed|of course|for sure"
    r"|certainly|sure|sure thing|right|true|ok|okay|same|same here|me too|me neither|i know|i think so"
    r"|not really)\b"
)
_CLAUSE = re.compile(r"[^\w\s'&–—-]+|\n|\s[–—-]+\s|\s&\s|\band\b(?=\s+(?:thank|have|good|take|you))")
_SPEECH = re.compile(r"\w")
_LONG = 300
"""Characters; nobody greets at greater length."""


@cache
def _filler() -> re.Pattern[str]:
    phrases = _PHRASES.replace("\n  ", "").split("\n")
    return re.compile("|".join(f"(?:{phrase})" for phrase in phrases if phrase))


def is_filler(text: str, names: Collection[str] = (), *, answers: bool = False) -> bool:
    """Whether there is nothing to remember in a message.

    Args:
        text: the message.
        names: of those who take part; calling them by name adds nothing.
        answers: the message follows a question: a yes or no is then an answer and worth keeping.
    """
    if len(text) > _LONG:
        return False
    clauses = [clause.strip() for clause in _CLAUSE.split(fold(text))]
    clauses = [clause for clause in clauses if _SPEECH.search(clause)]
    if answers and clauses and _YES_NO.match(clauses[0]):
        return False
    known = called(names)
    return all(_is_phrase(clause, known) for clause in clauses)


def _is_phrase(clause: str, known: Collection[str]) -> bool:
    if _filler().fullmatch(clause):
        return True
    words = clause.split()
    for rest, name in ((words[:-1], words[-1]), (words[1:], words[0])):
        if name in known and (not rest or _filler().fullmatch(" ".join(rest))):
            return True
    return False


def called(names: Collection[str]) -> frozenset[str]:
    """What people may be called, by name or not."""
    return short_names(names) | {
        "buddy",
        "dude",
        "friend",
        "man",
        "mate",
        "pal",
        "guys",
        "all",
        "everyone",
        "folks",
    }
