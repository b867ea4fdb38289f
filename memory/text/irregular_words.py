"""English forms that a stemmer cannot bring together, and words that carry no content."""

__all__ = ["BASE_FORMS", "FUNCTION_WORDS"]

_FORMS = """
become became|begin began begun|bite bit bitten|blow blew blown|break broke broken|bring brought|build built|
burn burnt|buy bought|catch caught|choose chose chosen|come came|cost|creep crept|deal dealt|dig dug|draw drew drawn|
dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|
find found|flee fled|fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|
freeze froze frozen|get got gotten|give gave given|go went gone|grow grew grown|hang hung|hear heard|hide hid hidden|
hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|leap leapt|learn learnt|leave left|lend lent|
lie lay lain|light lit|lose lost|make made|mean meant|meet met|pay paid|ride rode ridden|ring rang rung|
rise rose risen|run ran|say said|see saw seen|seek sought|sell sold|send sent|sew sewn|shake shook shaken|
shine shone|shoot shot|show showed shown|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|
slide slid|speak spoke spoken|spend spent|spin spun|spring sprang sprung|stand stood|steal stole stolen|stick stuck|
strike struck|swear swore sworn|sweep swept|swim swam swum|swing swung|take took taken|teach taught|tear tore torn|
tell told|think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn|weave wove woven|
weep wept|win won|wind wound|write wrote written|child children|man men|woman women|person people|foot feet|
tooth teeth|mouse mice|goose geese|life lives|wife wives|knife knives|leaf leaves|shelf shelves|wolf wolves|
good better best|bad worse worst|far further furthest
"""

#: Inflected form → base form.
BASE_FORMS: dict[str, str] = {
    form: base for base, *forms in (group.split() for group in _FORMS.replace("\n", "").split("|")) for form in forms
}

_FUNCTION_WORDS = """
a an the of to in on at for and or is are was were be been being am it its this that these those with as by from i you
he she we they my your his her our their me them us do did does have has had what when where who whom whose which how
why s t
"""

#: Words of English sentences and questions that say nothing about their subject. "May" and "will" are also a month and
#: a name, so they stay words.
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
