"""Sentences that tell what was, with a word that would bind if it were said about what shall be."""

import re

__all__ = ["TELLING"]

#: By language, in small letters. "He must be around forty" and "she never complained" bind nobody.
TELLING: dict[str, re.Pattern[str]] = {
    "en": re.compile(
        r"\bmust (?:\w+ )?have \w+(?:ed|en|wn|nt|ne|ght|een|ad|ost|elt|eft)\b"
        r"|\bmust be (?:around|about|nearly|almost|over|some|very|quite|so|nice|hard|tough|tired|hungry"
        r"|busy|proud|joking)\b"
        r"|\b(?:he|she|they|it|we|i|who|(?:my|his|her|their|our|the) [\w-]+) (?:has |have |had |'ve "
        r"|'d )?(?:never|always)"
        r" (?:\w{2,}ed|was|were|had|been|got|found|knew|known|saw|seen|went|gone|came|said|told|made|took"
        r"|taken|gave|given"
        r"|heard|thought|felt|left|met|sent|won|lost|wrote|written|ate|eaten|drank|sang|slept|spoke|bought"
        r"|brought|began"
        r"|understood|stood|sold|spent|did|kept|paid|read|ran|wore)\b"
        r"|\b(?:\w{2,}ed|was|were|had|lost|won|sold|took|saw|made|bought|ate|cost) (?:at least|at most"
        r"|only|no more than)\b"
        r"|\b(?:was|were) (?:\w+ )?the only\b|\bused to\b|\bthe only (?:\w+ ){1,3}(?:who|that) (?:\w+ed"
        r"|was|had|came)\b"
        r"|\b(?:i|we|you|they) (?:really |just |still )?(?:don't|do not) (?:see|think|remember|recall|mind"
        r"|believe|understand"
        r"|hear|know|feel|blame|get) (?!them\b|it\b)"
        r"|\bonly (?:came|saw|heard|knew|found|had|took|wanted|lasted|arrived)\b|\b(?:always"
        r"|never) (?:seems?|feels?|looks?) "
    ),
    "de": re.compile(
        r"\b(?:muss|müssen)\b[^.,;:!?]{1,60}\b(?:ge\w{2,}(?:t|en)|\w{3,}(?:iert|gangen|kommen|standen|loren)) haben\b"
        r"|\b(?:muss|müssen) (?:wohl|inzwischen|ungefähr|etwa)\b|\b(?:muss|müssen) [^.,;:!?]{1,40}gewesen sein\b"
        r"|\b(?:hat|hatte|habe|haben|hatten|war|waren|ist|bin)\b[^.,;:!?]{0,40}\b(?:nie|niemals|immer)\b"
        r"[^.,;:!?]{0,60}\b(?:ge\w{2,}(?:t|en)|\w{2,}(?:iert|gangen|kommen|standen|loren|fahren|klagt"
        r"|sucht|zählt|hielt))\b"
        r"(?! (?:werden|sein)\b)"
        r"|\b\w{2,}(?:te|ten|ierte) (?:mindestens|höchstens|nur|nie|niemals|immer)\b"
        r"|\b(?:war|waren|hatte|hatten|wurde|wurden|kam|kamen|ging|gingen|sah|blieb|blieben|gab|gewann|verlor)"
        r" (?:mindestens|höchstens|nur|nie|niemals|immer|ausschließlich)\b"
    ),
    "fr": re.compile(
        r"\b(?:doit|doivent) (?:bien |déjà )?avoir (?:une?|dans les|vers|environ|plus|près"
        r"|[a-zà-ÿ]{2,}(?:é|i|u)e?s?\b)"
        r"|\b(?:doit|doivent) (?:bien |déjà )?être (?:une? |dans les|vers|environ|près d)"
        r"|\b(?:ai|as|a|ont|avons|avez|avait|avaient|avais|était|étaient) (?:toujours|jamais|seulement"
        r"|uniquement|au moins)\b"
        r"|\bs'(?:est|était|étaient|sont) (?:toujours|jamais)\b|\b(?:est|sont) jamais (?:\w+é|venu"
        r"|parti|allé)e?s?\b"
        r"|\b(?:a|ont|avait|avaient) [a-zà-ÿ]{2,}(?:é|i|u|t|s)e?s? (?:au moins|au plus|seulement"
        r"|uniquement|toujours)\b"
        r"|\bc'(?:était|étaient) (?:la|le|les|notre|son|leur) seule?s?\b|[a-zà-ÿ]{2,}(?:ait"
        r"|aient) (?:toujours|jamais|seulement)\b"
        r"|\b(?:je|nous|on|il|elle|ils|elles) (?:ne |n')(?:pouvai|avai|étai|voulai|savai)[a-z]{1,4}\b"
    ),
    "es": re.compile(
        r"\bdeb(?:e|en|ió|ieron|ía|ían) de\b"
        r"|\b(?:nunca|jamás|siempre) (?:se |le |les |me |lo |la |nos )?(?:ha|han|había|habían|he|hemos|fue"
        r"|era|eran|tuvo"
        r"|estuvo|supo|dijo|hizo|quiso|[a-zñáéíóú]{2,}(?:ó|aron|ieron|aba|aban|ía|ían))\b"
        r"|\b[a-zñáéíóú]{2,}(?:ó|aron|ieron|aba|aban|ía|ían) (?:al menos|solo|sólo|solamente|únicamente"
        r"|como máximo)\b"
        r"|\bno (?:se )?(?:dio|vio|oyó|pude|pudo|pudimos|pudieron|podía|podían|tenía|tenían|tuve|tuvo"
        r"|había|era|eran|fue|fui"
        r"|estaba|estaban"
        r"|estuve|estuvo|quise|quiso|supe|supo|hay|sé|creo|recuerdo|me acuerdo|me importa|me extraña"
        r"|[a-zñáéíóú]{2,}(?:aba|ía)n?)\b"
        r"|\b(?:era|eran|fue|fueron) (?:la|el|las|los|mi|su|nuestro|nuestra) únic[ao]s?\b"
    ),
    "zh": re.compile(
        r"[了过](?:至少|最多|只有)|从来(?:不|没)|(?:一直|总是|始终)[^，。]{0,12}(?:了|着)[，。]?\Z|(?:以前"
        r"|过去|曾经)[^，。]{0,8}(?:总是|始终|只有)"
    ),
    "ja": re.compile(
        r"(?:少なくとも|常に|のみ|だけが|必ず|決して|絶対)[^。]{0,60}(?:ました|でした|ていた|だった)[。]?\Z"
    ),
}
