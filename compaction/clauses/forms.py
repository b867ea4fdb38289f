"""Cues that are forms of words or of sentences, by language, and the words that deny. Apostrophes are plain."""

import re
from typing import NamedTuple

from threadmark.compaction.clauses.clause import ClauseClass
from threadmark.compaction.keyword_prefilter import word_lead, words

__all__ = ["ENDINGS", "NEGATION", "POLAR", "POLITE_REQUEST", "Ending"]


class Ending(NamedTuple):
    """A cue that is a form. A text with none of the `hints` cannot match the pattern: most texts have none."""

    cls: ClauseClass
    pattern: re.Pattern[str]
    hints: tuple[str, ...]


#: Cues that are word forms, by language; tried on a whole sentence, in small letters.
ENDINGS: dict[str, tuple[Ending, ...]] = {
    "en": (
        Ending(
            ClauseClass.CONSTRAINT,
            re.compile(r"\A(?:please )?(?:no |only |keep |use |reply |answer |stay |write )[a-z]"),
            ("no ", "only ", "keep ", "use ", "reply ", "answer ", "stay ", "write "),
        ),
        Ending(
            ClauseClass.CORRECTION,
            re.compile(r"(?:should be|it's|it is|is|are|was) [^.,]{1,40}, not [a-z0-9$€]"),
            (", not ",),
        ),
        Ending(
            ClauseClass.COMMITMENT,
            re.compile(
                r"i'm [a-z]+ing [^.]{1,60}\b(?:today|tonight|tomorrow|this (?:morning|afternoon|evening"
                r"|week)|on (?:mon|tues|wednes|thurs|fri)day|by (?:mon|tues|wednes|thurs|fri)day)\b"
            ),
            ("i'm ",),
        ),
        Ending(
            ClauseClass.COMMITMENT,
            re.compile(r"[mo](?<![a-z][mo])(?:y|ur) [a-z]+ (?:takes care of|handles|takes over|looks after|will)\b"),
            ("takes care of", "handles", "takes over", "looks after", "will"),
        ),
        Ending(
            ClauseClass.CONSTRAINT,
            re.compile(
                r"\A(?:every|each|any|all|anything|everything) (?!morning|day|week|month|year|evening"
                r"|summer|winter|night|time|now|other)[^.,]{3,60}\b(?:gets|goes|carries|needs|requires"
                r"|stays|ends|starts|includes)\b"
            ),
            ("every", "each ", "any", "all "),
        ),
        Ending(
            ClauseClass.CORRECTION, re.compile(r", not (?:the |at |on |in |from |to )?[a-z0-9$€]+[.!]?\Z"), (", not ",)
        ),
        Ending(ClauseClass.OPEN_QUESTION, re.compile(r"\Awhether "), ("whether ",)),
    ),
    "de": (
        Ending(ClauseClass.CONSTRAINT, re.compile(r"\A(?:bitte )?keine?[nr]? [a-zäöü]"), ("kein",)),
        Ending(
            ClauseClass.COMMITMENT,
            re.compile(
                r"\bich (?:schicke|sende|liefere|mache|erledige|bringe|melde|rufe|schreibe|prüfe|übernehme|kümmere"
                r"|gebe|reiche|bereite)\b"
            ),
            ("ich ",),
        ),
        Ending(
            ClauseClass.CONSTRAINT,
            re.compile(
                r"\A(?:bitte )?(?:verwende|benutze|nutze|schreibe?|ändere|lösche|sende|schicke|teile|nimm|gib|mach"
                r"|rufe?|zeige|antworte|veröffentliche)(?:n sie)?\b[^.!?]{0,120}\b(?:nicht|keine?[nmrs]?|nie|nur)\b"
            ),
            ("nicht", "kein", "nie", "nur"),
        ),
        Ending(ClauseClass.DECISION, re.compile(r"\bfür [^.,]{3,60} ausgesprochen"), ("ausgesprochen",)),
        Ending(
            ClauseClass.DECISION,
            re.compile(r"\bhaben wir (?:uns )?[^.,]{2,50} (?:genommen|gewählt|ausgesucht|geeinigt)\b"),
            ("haben wir ",),
        ),
        Ending(
            ClauseClass.COMMITMENT,
            re.compile(
                r"\b(?:kümmert|übernimmt|erledigt)\b[^.]{0,60}\b(?:mein|unser)e?\b|\b(?:mein"
                r"|unser)e? [a-zäöüß]+ (?:kümmert|übernimmt|erledigt)\b"
            ),
            ("kümmert", "übernimmt", "erledigt"),
        ),
        Ending(
            ClauseClass.CONSTRAINT,
            re.compile(
                r"\A(?:jede[rsnm]?|alle|alles) (?!morgen|tag|woche|monat|jahr|abend|nacht|sommer|winter"
                r"|mal)[^.,]{3,60}\b(?:braucht|bekommt|läuft|trägt|erhält|benötigt|kommt in|geht (?:an"
                r"|über|zuerst))\b"
            ),
            ("jede", "alle"),
        ),
        Ending(
            ClauseClass.CORRECTION,
            re.compile(
                r"(?:,|\bund|\baber) nicht (?:der|die|das|am|um|von|in|im"
                r"|auf) [^.,]{1,25}[.!]?\Z(?<=[a-z0-9äöüß][.!])|, nicht [^.,]{1,15}[.!]?\Z"
            ),
            (" nicht ",),
        ),
        Ending(ClauseClass.OPEN_QUESTION, re.compile(r"\Aob "), ("ob ",)),
        Ending(
            ClauseClass.COMMITMENT,
            re.compile(
                r"[a-zäöüß](?<!hab)(?<!denk)(?<!glaub)(?<!find)(?<!mein)(?<!seh)(?<!hoff)(?<!frag)(?<!würd)"
                r"(?<!möcht)(?<!hätt)(?<!könnt)(?<!wollt)(?<!sollt)(?<!war)(?<!hatt)(?<!t)e ich\b"
            ),
            ("e ich",),
        ),
    ),
    "fr": (
        Ending(ClauseClass.CONSTRAINT, re.compile(r"\A(?:pas de|pas d'|aucune?) ?[a-zà-ÿ]"), ("pas d", "aucun")),
        Ending(ClauseClass.CORRECTION, re.compile(r"ce n'est pas [^.]{1,60} mais "), (" mais ",)),
        Ending(
            ClauseClass.COMMITMENT,
            re.compile(
                r"\bje (?:vous |te |t'|lui )(?:envoie|rappelle|transmets|livre|tiens|réponds|prépare|confirme)\b"
            ),
            ("je ",),
        ),
        Ending(ClauseClass.CONSTRAINT, re.compile(r"(?:\bne |\bn')[a-zà-ÿ]{2,20}(?:ez|ons)\b"), ("ne ", "n'")),
        Ending(ClauseClass.COMMITMENT, re.compile(r"\b(?:je |j')(?:vous |te |lui |l')?[a-zà-ÿ]{2,20}rai\b"), ("rai",)),
        Ending(ClauseClass.COMMITMENT, re.compile(r"\bnous (?:vous |lui )?[a-zà-ÿ]{2,20}rons\b"), ("rons",)),
        Ending(
            ClauseClass.DECISION,
            re.compile(r"\A(?:d'accord|ok|bon|alors|entendu)\b[^.]{0,12}\b(?:ce sera|va pour|on prend)\b"),
            ("ce sera", "va pour", "on prend"),
        ),
        Ending(
            ClauseClass.COMMITMENT,
            re.compile(
                r"\b(?:mon|ma|notre|nos|mes) [a-zà-ÿ]+ (?:se charge|s'occupe|se chargent|s'occupent|prend en charge)"
            ),
            ("charge", "s'occupe"),
        ),
        Ending(
            ClauseClass.CONSTRAINT,
            re.compile(
                r"\A(?:tout|toute|tous|toutes|chaque) (?!le |la |les |fois|jour|matin|soir|semaine|année"
                r"|été|ce )[^.,]{3,60}\b(?:passe|porte|reçoit|va|demande|exige|nécessite)\b"
            ),
            ("tou", "chaque"),
        ),
        Ending(
            ClauseClass.CORRECTION,
            re.compile(r"\b(?:et |, )(?:pas|non) (?:le |la |les |du |de |à |au |en )?[^.,]{1,20}[.!]?\Z"),
            ("et pas ", "et non ", ", pas ", ", non "),
        ),
        Ending(
            ClauseClass.COMMITMENT,
            re.compile(
                r"\bje [a-zà-ÿ]+e [^.]{3,60}\b(?:après|demain|ce soir|cet après-midi|lundi|mardi|mercredi|jeudi"
                r"|vendredi|d'ici)\b"
            ),
            ("je ",),
        ),
    ),
    "es": (
        Ending(ClauseClass.CORRECTION, re.compile(r"\bno es [^.,]{1,40}, (?:es|sino) "), ("no es ",)),
        Ending(
            ClauseClass.COMMITMENT,
            re.compile(r"\b(?:te|le|les|os|lo) (?:mando|envío|entrego|llamo|paso|preparo|confirmo)\b"),
            ("mando", "envío", "entrego", "llamo", "paso", "preparo", "confirmo"),
        ),
        Ending(
            ClauseClass.CONSTRAINT,
            re.compile(r"(?:\A|[,;:] ?|por favor,? )no (?:me |le |lo |la |se |nos )?[a-zñáéíóú]{2,16}[aes]s?\b"),
            ("no ",),
        ),
        Ending(
            ClauseClass.COMMITMENT,
            re.compile(r"\b[a-zñáéíóú]{2,20}(?:aré|eré|iré|aremos|eremos|iremos)\b"),
            ("aré", "eré", "iré", "emos"),
        ),
        Ending(
            ClauseClass.COMMITMENT,
            re.compile(
                r"\b(?:mi|nuestro|nuestra|mis|nuestros) [a-zñáéíóú]+ (?:se encarga|se ocupa|se encargan"
                r"|se ocupan|asume)"
            ),
            ("se encarga", "se ocupa", "asume"),
        ),
        Ending(
            ClauseClass.CONSTRAINT,
            re.compile(
                r"\A(?:todo|toda|todos|todas|cada) (?!el |la |los |las |vez|día|mañana|noche|año|semana"
                r"|verano)[^.,]{3,60}\b(?:pasa|va|lleva|necesita|recibe|requiere)\b"
            ),
            ("tod", "cada "),
        ),
        Ending(ClauseClass.CONSTRAINT, re.compile(r"\A(?:que )?nadie [a-zñáéíóú]{2,}[ea]\b"), ("nadie ",)),
        Ending(
            ClauseClass.CORRECTION,
            re.compile(r"(?:, | y )no (?:el |la |los |las |del |de |al |a |en )?[^.,]{1,20}[.!]?\Z"),
            (", no ", " y no "),
        ),
        Ending(
            ClauseClass.COMMITMENT,
            re.compile(
                r"\b(?:paso a|voy a|llevo|traigo|mando|hago|preparo) [^.]{3,60}\b(?:mañana|luego|después|antes del"
                r"|esta (?:tarde|noche|semana)|el (?:lunes|martes|miércoles|jueves|viernes))\b"
            ),
            ("paso a", "voy a", "llevo", "traigo", "mando", "hago", "preparo"),
        ),
    ),
    "zh": (
        Ending(ClauseClass.CORRECTION, re.compile(r"不是[^。，,]{1,20}[，,]?(?:是|而是)"), ("不是",)),
        Ending(
            ClauseClass.COMMITMENT,
            re.compile(
                r"我(?:今天|明天|后天|今晚|周[一二三四五六日]|下周|来|去|尽快)?(?:会|将)?(?:把|发送|提交|处理|完成)"
            ),
            ("我",),
        ),
        Ending(
            ClauseClass.CONSTRAINT,
            re.compile(r"(?<![分特区级类性鉴辨差告离识个派各送])别(?![人的处墅名针扭致])"),
            ("别",),
        ),
        Ending(ClauseClass.DECISION, re.compile(r"(?<![肯一固稳决])定(?:在|了(?![吗没]))"), ("定在", "定了")),
        Ending(ClauseClass.CORRECTION, re.compile(r"是[^。，,]{1,20}[，,]不是"), ("不是",)),
        Ending(ClauseClass.OPEN_QUESTION, re.compile(r"([一-鿿])不\1"), ("不",)),
    ),
    "ja": (
        Ending(ClauseClass.COMMITMENT, re.compile(r"までに[^。]{1,40}ます"), ("までに",)),
        Ending(
            ClauseClass.COMMITMENT,
            re.compile(r"(?:のあとで?|明日|今日中|今夜|午後|来週|後で|あとで)[^。]{1,40}(?:ます|ましょう)[。]?\Z"),
            ("ます", "ましょう"),
        ),
        Ending(ClauseClass.DECISION, re.compile(r"(?:まま|こと|案)に(?:します|しました)"), ("にします", "にしました")),
        Ending(ClauseClass.OPEN_QUESTION, re.compile(r"か(?:は|、|も)?(?:まだ|誰に|分か|わか|不明|未)"), ("か",)),
    ),
}
POLITE_REQUEST = re.compile(
    r"\A(?:please|can you|could you|would you|will you|können sie|kannst du|pouvez-vous|puede|podría|请)"
)

NEGATION = re.compile(
    word_lead(
        words("""
    not never no none without nor cannot can't won't don't doesn't mustn't shouldn't isn't forbidden prohibited avoid
    nobody barred banned refrain nicht kein keine keinen keinem keiner nie niemals ohne verboten keinesfalls untersagt
    niemand niemanden niemandem nichts ne n' pas jamais aucun aucune sans interdit interdite interdits interdites
    personne nunca jamás sin ningún ninguna prohibido prohibida evitar nadie ni nada impide prohíbe prohíben vetado
    """)
    )
    # "Without exception" denies nothing.
    + r"(?![a-z0-9_ß-ɏ])(?! (?:exception|excepci|ausnahme))"
    + r"|\b(?:hands off|finger weg)\b|[不没未勿禁别无]|ない|ません|なし|ず[、。に]|禁止"
)
#: All that says which way a sentence goes: without it, a rule and its opposite are the same words.
POLAR = re.compile(
    NEGATION.pattern.replace("ない|ません", "(?:し|では|て)?ないで?(?:ください)?|てはいけません|ません", 1)
    + "|"
    + word_lead(
        words("""
    always anybody everybody anyone everyone allowed permitted must may should do jeder jede alle alles immer erlaubt
    gestattet darf dürfen muss müssen mit toujours permis permise autorisé faut doit siempre permitido permitida todos
    cualquiera debe deben
    """)
    )
    + r"(?![a-z0-9_ß-ɏ])|可以|允许|必须|不?要|请|得|(?:し)?てください|んで(?:ください)?|ください|許可|する(?=こと)"
)
