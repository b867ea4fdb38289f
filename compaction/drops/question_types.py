"""What kind of thing a question asks for, in six languages: "how much" wants a sum, "until when" a date.

A guess from words, and only for the order of answers: a question that no cue fits is ranked by its words alone.
"""

import re

from threadmark.compaction.atoms import AtomClass
from threadmark.compaction.clauses import ClauseClass

__all__ = ["classes_asked"]

_A, _C = AtomClass, ClauseClass
#: "How heavy", and not "how does": the word behind it measures.
_NO_VERB = (
    r"(?!(?:do|does|did|can|could|should|shall|is|are|was|were|to|we|i|you|the|about|come|many|much|often|long"
    r"|will|would"
    r"|heiß\w*|ist|laut\w*|kann|könn\w*|soll\w*|wird|werd\w*|war\w*|sind|komm\w*|geht|viel\w*|oft|lange|wir|ich|man|sie"
    r"|er|es|hat|hab\w*|nenn\w*)(?!\w))\w"
)
#: Words with letters are looked for at the beginning of a word; `+` matches any ending. Others match anywhere.
_CUES: tuple[tuple[tuple[AtomClass | ClauseClass, ...], str], ...] = (
    (
        (_A.MONEY,),
        """how much|money|cost+|price+|budget+|spend|spent|pay|paid|fee|fees|expens+|afford|worth|amount+|salar+|earn+
        |proceeds|income|rent|wage+|einnahm+|verdien+|eingebracht|miete|gehalt|erlös+|loyer|salaire|recette+|gagn+
        |ingres+|sueldo|alquiler|gan[aóé]+|收入|收益|工资|租金|家賃|収入|売上|給料
        |wie viel geld|wieviel geld|geld|kost+|preis+|teuer|bezahl+|zahl+|ausgeb+|gebühr+|betrag+|summe|was macht
        |combien|argent|coût+|coûte+|prix|budget|dépens+|payer|paie|paye|montant+|somme|tarif+
        |cuánto|dinero|cuesta+|costo+|coste+|precio+|presupuesto+|gasto+|gastar+|gastamos|pagar|pagamos
        |importe+|tarifa+|crédito
        |多少钱|花费|费用|预算|价格|价钱|金额|付多少|花多少|成本|いくら|お金|費用|予算|値段|金額|料金|価格|代金""",
    ),
    (
        (_A.DATE,),
        """when|what date|which date|what day|which day|until when|by when|deadline|due|date|how long|expir+
        |wann|datum|termin+|welchem tag|welcher tag|frist+|stichtag|wie lange
        |quand|quelle date|quel jour|dates|échéance+|délai+|jusqu'à
        |cuándo|fecha+|qué día|plazo+|hasta cuándo|vence
        |什么时候|何时|哪天|哪一天|日期|期限|几月|到期|什么时间|いつ|何日|日付|期限|締め切り|締切|日にち|何月""",
    ),
    (
        (_A.TIME,),
        """what time|which time|what hour|hour|o'clock|when
        |wie viel uhr|wieviel uhr|uhrzeit|wann|quelle heure|quand|qué hora|cuándo|几点|什么时候|何时|何時|いつ""",
    ),
    (
        (_A.EMAIL, _A.NAME, _A.HANDLE),
        """who|whom|whose|contact|e-mail|email|mail|wer|wem|wen|wessen|ansprechpartner+|mail+
        |qui|à qui|contacter|courriel|mail|quién|quiénes|correo|contacto
        |谁|哪位|联系|邮箱|邮件|誰|どなた|連絡|メール""",
    ),
    (
        (_A.PHONE,),
        """phone+|telephone+|call|contact|reach|dial|mobile|telefon+|anruf+|rufnummer|handy|durchwahl
        |téléphon+|appeler|appelle|composer|numéro|teléfono+|llamo|llamar|móvil|电话|拨打|手机|号码|電話|携帯|連絡する番号""",
    ),
    (
        (_A.PATH,),
        """where can|where do|wo find+|où trouve+|dónde encuentr+|哪里|在哪|どこ|file|files|folder+|directory|path
        |stored|saved|datei+|ordner+|verzeichnis|pfad+|abgelegt|gespeichert
        |fichier+|dossier+|répertoire+|chemin|archivo+|carpeta+|fichero+|ruta
        |文件|目录|路径|存在哪|放在哪|ファイル|フォルダ|パス|保存先""",
    ),
    (
        (_A.URL, _A.HOST),
        """where can|wo find+|où trouve+|dónde encuentr+|url|link+|website|web site|address|page|adresse+|link+
        |seite|webseite|internetseite
        |lien+|adresse|site|page|enlace+|dirección|página|sitio|web
        |网址|链接|地址|页面|访问|url|リンク|アドレス|ページ|サイト""",
    ),
    (
        (_A.HOST,),
        """which server|which host|machine|server|rechner|serveur|servidor|máquina|服务器|主机|サーバー?|ホスト""",
    ),
    (
        (_A.REFERENCE, _A.UUID, _A.HASH),
        """password|passcode|kennwort|passwort|mot de passe|contraseña|clave|密码|パスワード|暗証
        |number|reference+|id|ticket|code|identifier|case|nummer+|kennzeichen|aktenzeichen|vorgang|kennung
        |numéro|référence+|identifiant|número|referencia+|expediente|编号|几号|单号|号码|番号|何番|管理番号|コード""",
    ),
    (
        (_A.PERCENT,),
        """percent+|what part|portion|fraction|welcher teil|quelle part|qué parte|几成|何割|discount+|rate|share
        |rebate|how much off|prozent+|rabatt+|nachlass+|anteil+|quote|zinssatz
        |ermäßigung|pourcent+|réduction+|remise+|rabais|taux|porcentaje+|descuento+|rebaja+|tasa|proporción
        |百分|折扣|优惠|比例|比率|利率|割引|パーセント|割合|率""",
    ),
    (
        (_A.NUMBER, _A.QUANTITY),
        """how many|how often|wie viele|wieviele|wie oft|combien|cuánt+|多少|几个|几次|いくつ|何個|何人|何回|何枚""",
    ),
    (
        (_A.QUANTITY,),
        rf"""how {_NO_VERB}+|size|temperature|limit|weight|length|capacity|maximum|minimum|dose+
        |wie {_NO_VERB}+|größe|temperatur|gewicht|länge|grenze|höchst+|mindest+|dosis
        |niveau|température|taille|poids|longueur|limite|quelle distance|dépasser|dose|quelle hauteur
        |cuánt+|temperatura|tamaño|peso|longitud|límite|distancia|superar|máximo|mínimo|dosis|qué tan
        |多[大长远热高重宽深快久厚冷]|温度|大小|面积|上限|最高|最多|最低|剂量
        |どのくらい|どれだけ|どれくらい|何度|温度|大きさ|重さ|長さ|面積|広さ|上限|最大|最低""",
    ),
    ((_A.VERSION,), "version+|fassung|versión|版本|バージョン"),
    ((_A.ERROR,), "error+|exception|failure|fehler+|erreur+|fallo+|错误|报错|エラー"),
    ((_A.COMMAND, _A.CODE), "command+|befehl+|kommando|commande+|comando+|orden|命令|コマンド"),
    (
        (_C.CONSTRAINT,),
        """forbid+|forbidden|prohibit+|allowed|permitted|may not|must|mustn't|can't|cannot|never|rule|rules|required
        |have to|has to|avoid|ban|banned|verboten|erlaubt|darf|dürfen|muss|müssen|untersagt|regel+|vorschrift+|nie
        |vermeid+        |höchstens|mindestens|unverträglich+|interdi+|défend+|permis|autoris+|faut|doit
        |doivent|règle+|jamais|obligatoire+|évit+
        |prohib+|permitid+|debe|deben|debo|regla+|nunca|obligatori+|evitar|no puede|hay que
        |禁止|不能|不准|不得|不许|必须|规定|可以|最高|最多|不可|禁止|いけな|いけま|だめ|してはならない|必ず|規則|決まり|られない|上限""",
    ),
    (
        (_C.DECISION, _C.CORRECTION),
        """choose|chose|chosen|decide+|decision+|pick|picked|select+|opt|opted|settle|settled|agreed on|went with
        |entschied+|entscheid+|gewählt|wählt+|ausgesucht|beschlossen|beschluss|einigt+|geeinigt
        |choisi+|retenu+|décid+|décision+|opté|sélection+|elegi+|elig+|decidi+|decisión|escog+|optamos|inclinamos|optado
        |选了|选择|选定|决定|采用|定了|選び|選んだ|選ん|決め|決まっ|採用""",
    ),
    (
        (_C.COMMITMENT,),
        """promis+|commit+|owe|pledg+|expect+|agreed to|zugesagt|zusage+|versproch+|versprech+|erwartet
        |promis+|promesse+|engag+|attend|promet+|comprom+|prometi+|espera
        |答应|承诺|保证|约定|約束|お約束|誓""",
    ),
)
#: Words that leave no doubt about what is asked for.
_QUESTION_WORDS: tuple[tuple[tuple[AtomClass | ClauseClass, ...], str], ...] = (
    (
        (_A.MONEY,),
        "how much money|what does it cost|wie viel geld|wieviel geld|combien d'argent|cuánto dinero|cuánto cuesta"
        "|多少钱|いくら",
    ),
    (
        (_A.DATE,),
        """what date|which date|what day|which day|until when|by when|since when|bis wann|ab wann|seit wann|welchem tag
        |quelle date|quel jour|jusqu'à quand|à partir de quand|depuis quand|qué fecha|qué día|hasta cuándo|desde cuándo
        |哪天|哪一天|几月|何日|何月|いつまで|いつから""",
    ),
    ((_A.DATE, _A.TIME), "when|wann|quand|cuándo|什么时候|何时|いつ"),
    ((_A.TIME,), "what time|which time|at what hour|wie viel uhr|wieviel uhr|quelle heure|qué hora|几点|何時"),
    ((_A.EMAIL, _A.NAME, _A.HANDLE, _A.PHONE), "who|whom|wer|wem|wen|qui|quién|quiénes|谁|哪位|誰|どなた"),
    (
        (_A.PHONE,),
        """phone number|telephone number|telefonnummer|rufnummer|numéro de téléphone|número de teléfono|qué teléfono
        |电话号码|電話番号""",
    ),
    ((_A.PATH,), "which file|what file|welcher datei|welche datei|quel fichier|qué archivo|哪个文件|どのファイル"),
    ((_A.URL,), "url|网址"),
)
#: What other words of a question tell beside one of those.
OTHER_WEIGHT = 0.4


def _pattern(cues: str) -> re.Pattern[str]:
    words = [re.sub(r"\s+", " ", each.strip()) for each in re.split(r"\|(?![^(]*\))", cues)]
    made = [_word(each) for each in words if each]
    return re.compile("|".join(made), re.IGNORECASE)


def _word(cue: str) -> str:
    if cue[0] >= "\u3040":
        return cue
    end = "" if cue.endswith("+") else r"(?!\w)"
    return rf"(?<!\w){cue.removesuffix('+')}{end}"


_STRONG = tuple((classes, _pattern(cues)) for classes, cues in _QUESTION_WORDS)
_PATTERNS = tuple((classes, _pattern(cues)) for classes, cues in _CUES)


def classes_asked(question: str) -> dict[str, float]:
    """The classes of drops that would answer the question, each with its weight up to 1; none where nothing tells.

    "Until when does the contract for the telephone run" asks for a date: where the question's own word tells, other
    words tell less.
    """
    plain = {str(cls) for classes, pattern in _STRONG if pattern.search(question) for cls in classes}
    found = {str(cls) for classes, pattern in _PATTERNS if pattern.search(question) for cls in classes}
    return {cls: 1.0 if not plain or cls in plain else OTHER_WEIGHT for cls in plain | found}
