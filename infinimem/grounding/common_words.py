"""Words that tell nothing about a topic."""

from __future__ import annotations

from functools import cache

from infinimem.terms import STOP_WORDS, tokens

_COMMON = """
self able above absolute absolutely accept accomplish accomplishment achieve achievement achieving across act
actual actually add added adding admire adorable advance advanced adventurous advice afraid age ago agree
ahead ain't air alive allow almost alone along already alright although always amaze amazed amazing american
amount ancient angry annual another answer anxious anymore anyone anything anytime anyway anywhere apart
apparently appear appreciate appreciated april area around asap aside ask asked assist assistant associated
ate attempt attend august available away awe awesome awful awhile back backward bad based basic basically
bear beautiful beauty became because become began begin beginning behind believe below beneath beside
besides best better beyond big bigger biggest bit black blast bless blessed blow blown blue bond boost born
boss bother bought bout brave bravery breathtaking bright brilliant bring broad broke brought brown btw
build built bummed bummer bump bunch busy buy bye call called calm came cannot capture captured care carry
caught cause celebrate celebrating certain challenge challenging chance change chase chasing chat cheap
check cheer cheering cherish chill choice choose chose chuckle chunk city classic clean clear clearly clever
climb close closer cold color colour come comfort comforting common comp complete completely complex
confidence congrats congratulate congratulation connect connected connection consider continue convey cool
cope coping cos cost could couldn't count couple courage course cover cozy crazy create created creative
crucial crush crushed curious current currently cute cuz daily dark day deal dealing dear december decide
decided dedicate dedicated dedication deep deeply definitely delicious depend depict describe deserve
destress determination determined develop did didn't difference different difficult direction dirty discuss
doing don't doubt down drank drawn dream drew drive drop drove dry dumb dunno during earlier early ease
easily easy edit effect effort eight else embrace emotion empower enable encourage encouraging end energy
enjoy enjoyable enjoyed enormous enough epic escape especially essential even evening event eventually every
everybody everyone everyone's everything everywhere evoke exactly example excellent except excite excited
exciting exhausted exist expand expanding expect expensive experience explain explore exploring express
expression extra extremely eye face faced facing fact facts fair fall fam fantastic far fascinating fast
fave favorite favourite february feel feeling fell felt few fierce figure fill final finally find fine
finish first fit five flew focus folk folks follow following forever forget form forward found four free
frequently fresh fri friday friend front fuel fulfill fulfilling full fun funny future fyi gain gather gave
general gentle genuine genuinely gesture giggle give given glad goal gonna good goodbye gorgeous got gotta
grab graceful grateful gray great greatly green grey group grow growing grown growth guess guidance guide
guy guys haha half hand handle hang hangout happen happened happening happiness happy hard hardly haven't
head heap hear heard heart heartwarming heavy held hello help helped helpful helping hers hey hi high
highlight hit hmm hold home honest honestly honor hop hope hopeful hoping hot hour hours hug huge humble
hundred hung hurdle idea ideal image imagine immediately imo impact important impress impressed impressive
improve include including incredible incredibly indeed insane inside insight inspiration inspire inspired
inspiring instead intend intense interest interested interesting invite involve involved issue it'd january
job join joined journey joy joyful juggle juggling july jump june keen keep keeping keepsake kept key kill
killer kind kinda kindhearted kindly kindness knew know known large last late lately later latest laugh
laughter lazy lead lean learn learned learning least leave left legit lemme less let level lie life lift
light likely line list listen literally little live lively living lmk load loads local located lol lonely
long longer look looked looking lose lost lot lots loud love loved lovely loving low loyal luck lucky mad
made magical main major make making man manage manner many march mark massive matter maybe mean meaning
meaningful means meant meet memories memory men mention mentioned message met mind mine minute miss modern
moment moments mon monday month monthly months mood moreover morning motivate motivated motivating
motivation move moved much nail name named narrow natural near nearby nearly neat necessary need needed
nervous never new news next nice night nine normal normally nothing notice november now number nurture
obstacle obvious obviously occasion october offer often oh ok okay old omg one onwards ooh open opinion
opportunity option orange order organize organized original others otherwise ours ourselves outside outta
overall overcome overwhelm overwhelming pace paid part particular particularly pass passion passionate past
path patient pay peace peaceful people perfect perfectly perhaps person personal photo pic pick picked
picture piece pieces pink place plan planned planning play played playing pleasure plenty plus point pop
positive possible post pov prob power powerful practice precious prefer prepare pretty previous priceless
probably problem process produce progress promise proud provide psyched pull pumped purple purpose pursue
pursuing push pushing put quality question quick quickly quiet quietly quite rad ran rarely rather reach
reached read ready real realize realized really reason recent recently recharge recommend red reflect
reflecting reflection refreshing refuse regard regular relate relax relaxing rely remain remember remind
reminder reminds remote reply represent require resilient respond rest result return reward rewarding rich
right risk road rock rocks rode role room root rooting rose run sad safe said sake sang sat saturday save
savor saw say saying says scared scary scene sec second see seeing seek seem seemed seems seen sense sent
september serenity serious seriously set setback seven several shape share shared sharing short shot should
show showed showing shown shy side sight sign silly similar simple simply since sincerely sit situation six
skill slay slept slice slow small smaller smart smash smashed smile soft sold solid someone something
sometime sometimes somewhere soon sooner sorry sort sorta soul sound sounds source space speak special
specific spend spent spirit spoke spot spread stand start started starting state stay steady step stick
still stoked stood stop story strength stress strike strive striving strong struggle stuck stuff stun
stunning stupid style succeed success successful such suck suggest suggestion sun sunday sung super support
supported supporting supportive suppose supposed sure surely surprise surprised swam sweet sweetest switch
symbolize tackle take taken taking talk talked talking tall taught tbh tell ten tend tender term terrible
thank thankful thankfully thanks theirs therapeutic thick thin thing things think thinking third though
thought thoughtful thousand three thrill thrilled throughout throw thu thursday thx til time times tiny tip
tips tired today together told tomorrow ton tonight tons took top total totally touch touching tough toward
towards track traditional treasure treasured treat trial trick tried true truly trust try trying tue tuesday
tune turn turned two type typical ugh ultimate understand understanding understood unforgettable
unfortunately unique unknown unless unlike unwind up upcoming update upset upwards ur use used useful user
usual usually valuable value various vast version vibe vibes vibrant vid view visit visited vital voice wait
wake waking wanna want wanted warm watch watched way ways wear wed wednesday week weekend weekly weeks weird
welcome well went wet whatever whenever white whoa whole wide wild willing willingness win wise wish wishing
within woke woman women won wonder wondered wonderful wondering word words wore work worked working world
worried worry worth worthwhile would wow write wrong wrote y'all yay yea yeah year yearly years yellow yep
yesterday young yours yup
"""


@cache
def common_terms() -> frozenset[str]:
    """Terms that tell nothing about a topic: function words and common words, stemmed."""
    words = [*STOP_WORDS, *_COMMON.split()]
    return frozenset(term for word in words for term in tokens(word))
