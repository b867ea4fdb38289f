"""Finders of the containers: quoted strings, command lines and error texts."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from threadmark.compaction.atoms.atom import AtomClass
from threadmark.compaction.atoms.canvas import Canvas
from threadmark.compaction.atoms.codes import looks_like_command
from threadmark.compaction.keyword_prefilter import word_lead, words

__all__ = ["find_commands", "find_errors", "find_quotes"]

QUOTE_MAX = 300
_PAIRS = {"“": "”", "„": "“”", "«": "»", "「": "」", "『": "』", "《": "》", "»": "«"}
_OPENING = re.compile("[“„«「『《»]")
_CURLY = re.compile(r"‘(?<![A-Za-z]‘)([^‘’\n]{2,120}+)’(?![A-Za-z])")
_STRAIGHT = re.compile(r'"(?<![\w\\"]")(?=\S)([^"\n]{1,300}+)"(?![A-Za-z0-9_À-ɏ])')
_SINGLE = re.compile(r"'(?<![\w'\\]')(?=[^\s'])([^'\n]{2,120}+)'(?![\w'])")
_PROMPT = re.compile(r"(?m)^[ \t]{0,8}+(?:\$|>|%|#) (?=[a-z./~])([^\n]{2,500}+)")
_PROGRAMS = words("""
    sudo git npm npx yarn pnpm pip pip3 uv docker kubectl helm terraform curl wget ssh scp rsync psql cargo
    systemctl journalctl apt-get brew pytest alembic python python3 make gh aws gcloud redis-cli chmod chown
    mkdir rm cp mv
""")
_LINE = rf"(?:sudo )?(?:{'|'.join(_PROGRAMS)}) [^\n\u3000-\u9fff，。；、`]{{1,400}}+"
_FIRST_COMMAND = re.compile(rf"[ \t]{{0,8}}({_LINE})")
_LINE_COMMAND = re.compile(rf"[\n:](?:(?<=\n)[ \t]{{0,8}}|(?<=:) )({_LINE})")
_RUN_COMMAND = re.compile(rf"un (?<=[Rr]un )({_LINE})")
_TOLD_COMMAND = re.compile(
    rf"[Eeé执运実](?:xecute |xécute[zr]? |jecutar? |(?<=执)行 ?|(?<=运)行 ?|(?<=実)行: ?)({_LINE})"
)
_SUBCOMMAND = re.compile(r"(?:sudo )?[\w\-]{1,20} [-./~$\"'\w]")
#: Programs whose names are English words: what follows must look like an argument, not like a sentence.
_WORDY = re.compile(
    r"(?:sudo )?(?:make|python3?|docker|git|curl|helm|rm|cp|mv|yarn|uv|gh|aws) (?:is|was|are|and|or|sure|"
    r"the|it|a|an|has|have|for|to|in|on|with|as|can|does|will|should|must|not|that|this|these|them|us)\b"
)
_SENTENCE_END = re.compile(
    r"[.!?](?=\s|$)|, (?:then|and|dann|puis|luego)\b| (?:and then|before|after|to see|in order)\b"
)
_ERROR_ENDINGS = ("Error", "Exception", "Warning", "Fault", "Failure", "Interrupt")
_ERROR = re.compile(
    r"[EWFI](?:(?<=E)(?:rror|xception)|(?<=W)arning|(?<=F)(?:ault|ailure)|(?<=I)nterrupt)"
    r"(?:\([^)\n]{0,80}\))?: [^\n]{1,200}+"
)
_ERROR_NAME_BACK = re.compile(r"[A-Za-z0-9_.]{1,120}+")
_ERROR_LINE = re.compile(
    r"[EeFfp错报エ](?:(?<=[Ee])rr(?:or|eur)|(?<=E)RROR|(?<=[Ff])atal|(?<=F)(?:ATAL|AILED|ehler(?:meldung)?)|(?<=p)anic"
    r"|(?<=错)误(?:信息)?|(?<=报)错|(?<=エ)ラー(?:メッセージ)?)(?: ?\[[\w\-]{1,20}\])?"
    r"(?: ?: |：| E\d{1,6}: )[^\n]{3,200}+"
)
_EXIT = re.compile(
    word_lead(
        (
            "exit code",
            "exit status",
            "Exit-Code",
            "code de sortie",
            "código de salida",
            "退出码",
            "終了コード",
            "HTTP",
            "status code",
            "Statuscode",
        )
    )
    + r"[ :：]{0,2}\d{1,3}(?!\d)(?: (?:Not Found|Forbidden|Unauthorized|Bad Gateway|Bad Request|Too Many Requests"
    r"|Internal Server Error|Service Unavailable|Gateway Timeout|Conflict))?"
)
_ERRNO = re.compile(
    r"[EOSCI](?<![A-Za-z0-9_][A-Z])(?:(?<=E)(?:CONN(?:REFUSED|RESET|ABORTED)|ADDRINUSE|ACCES|NOENT|PERM|PIPE|TIMEDOUT"
    r"|HOSTUNREACH|EXIST|RR_[A-Z_]{3,40})|(?<=O)(?:RA-\d{5}|OMKilled)|(?<=S)IG(?:KILL|SEGV|TERM|ABRT)|(?<=C)rashLoopBackOff"
    r"|(?<=I)magePullBackOff)(?![A-Za-z0-9_])"
)
_ERROR_STOP = re.compile(
    r"[.!?](?:\s|$)|[。！？」”\"`]|\\n| (?:when|while|wenn|quand|cuando) |; "
    "|になり|が出|と出|を返し|で(?:終わ|落ち|止ま)"
)
#: In a sentence of a script without blanks, a message in ASCII ends where that script goes on.
_ERROR_STOP_ASCII = re.compile(_ERROR_STOP.pattern + "|[\u3040-\u30ff\u4e00-\u9fff，、]")
#: Where a pattern may begin: strings, and how far behind its beginning each of them stands.
_ERROR_LEADS = tuple((ending, 0) for ending in _ERROR_ENDINGS)
_LINE_LEADS = (
    *((lead, 1) for lead in ("rror", "RROR", "atal", "ATAL", "AILED", "ehler", "rreur", "anic")),
    *((lead, 0) for lead in ("错误", "报错", "エラー")),
)
#: Each pattern with strings without which it cannot match: most texts have none of them.
_NAMED_ERRORS = (
    (_EXIT, ("exit ", "Exit-", "code de ", "código", "退出码", "終了", "HTTP", "tatus code", "tatuscode")),
    (
        _ERRNO,
        ("ECON", "EADD", "EACC", "ENOE", "EPER", "EPIP", "ETIM", "EHOS", "EEXI", "ERR_", "ORA-", "SIG", "OOM", "Back"),
    ),
)


def find_quotes(canvas: Canvas) -> None:
    """Text between quotation marks, without the marks; the keys of JSON are structure, not quotations."""
    text = canvas.text
    for match in () if canvas.is_ascii else _OPENING.finditer(text):
        # German books open with the mark that closes in French.
        if (match[0] == "»") != (canvas.language == "de") and match[0] in "»«":
            continue
        closers = _PAIRS[match[0]]
        start = match.end()
        ends = [at for closer in closers if (at := text.find(closer, start, start + QUOTE_MAX)) >= 0]
        if ends and "\n" not in text[start : min(ends)]:
            _add_quote(canvas, start, min(ends))
    for match in _STRAIGHT.finditer(text) if '"' in text else ():
        if not text.startswith((":", '":'), match.end()):
            _add_quote(canvas, match.start(1), match.end(1))
    for match in () if canvas.is_ascii else _CURLY.finditer(text):
        _add_quote(canvas, match.start(1), match.end(1))
    for match in _SINGLE.finditer(text) if "'" in text else ():
        if not text.startswith(":", match.end()):
            _add_quote(canvas, match.start(1), match.end(1))


def _add_quote(canvas: Canvas, start: int, end: int) -> None:
    written = canvas.text[start:end]
    start += len(written) - len(written.lstrip())
    written = written.strip()
    if len(written) > 1 and any(char.isalnum() for char in written):
        form = " ".join(unicodedata.normalize("NFKC", written).split())
        canvas.add(AtomClass.QUOTED, start, start + len(written), form)


def find_commands(canvas: Canvas) -> None:
    """Lines behind a prompt, and known programs with arguments at the start of a line or behind "run"."""
    text = canvas.text
    prompted = "$ " in text or "> " in text or "% " in text or "# " in text
    for match in _PROMPT.finditer(text) if prompted else ():
        if looks_like_command(match[1]) or text[match.start(1) - 2] == "$":
            _add_command(canvas, match.start(1), match.end(1), whole=True)
    first = _FIRST_COMMAND.match(text)
    commands = [first] if first else []
    if ": " in text or "\n" in text:
        commands.extend(_LINE_COMMAND.finditer(text))
    if "un " in text:
        commands.extend(_RUN_COMMAND.finditer(text))
    if "xecut" in text or "jecuta" in text or "xécute" in text or not canvas.is_ascii:
        commands.extend(_TOLD_COMMAND.finditer(text))
    for match in commands:
        if _SUBCOMMAND.match(match[1]) and not _WORDY.match(match[1]):
            _add_command(canvas, match.start(1), match.end(1), whole=False)


def _add_command(canvas: Canvas, start: int, end: int, *, whole: bool) -> None:
    written = canvas.text[start:end]
    if not whole:
        stop = _SENTENCE_END.search(written)
        written = written[: stop.start()] if stop else written
    written = written.rstrip(" \t.,;:`")
    if any(each.cls is AtomClass.COMMAND and each.start <= start < each.end for each in canvas.found[-40:]):
        return
    canvas.add(AtomClass.COMMAND, start, start + len(written), " ".join(written.split()))


def find_errors(canvas: Canvas) -> None:
    """Exceptions with their message, error lines, exit codes and names of system errors."""
    text = canvas.text
    spans: list[tuple[int, int]] = []
    for start, end in _matches(text, _ERROR, _ERROR_LEADS):
        name = _error_name(text, start)
        _add_span(spans, name, _message_end(text, name, end))
    for start, end in _matches(text, _ERROR_LINE, _LINE_LEADS):
        if start == 0 or text[start - 1] in " \n\t：:「“\"'`(":
            _add_span(spans, start, _message_end(text, start, end))
    for pattern, hints in _NAMED_ERRORS:
        if any(map(text.__contains__, hints)):
            for match in pattern.finditer(text):
                _add_span(spans, *match.span())
    for start, end in spans:
        written = _without_tail(canvas.text[start:end])
        form = " ".join(unicodedata.normalize("NFKC", written).split())
        canvas.add(AtomClass.ERROR, start, start + len(written), form)


def _matches(text: str, pattern: re.Pattern[str], leads: Sequence[tuple[str, int]]) -> Iterator[tuple[int, int]]:
    """The spans that `finditer` would give, tried only where one of the leads stands."""
    places: list[int] = []
    for lead, behind in leads:
        at = text.find(lead)
        while at >= 0:
            if at >= behind:
                places.append(at - behind)
            at = text.find(lead, at + 1)
    done = 0
    for place in sorted(places):
        if place >= done and (match := pattern.match(text, place)):
            done = match.end()
            yield place, done


def _add_span(spans: list[tuple[int, int]], start: int, end: int) -> None:
    """Keep the span unless it overlaps one of the last."""
    for first, last in spans[-8:]:
        if first < end and start < last:
            return
    spans.append((start, end))


def _error_name(text: str, ending: int) -> int:
    """Where the name starts that ends in "Error": `requests.exceptions.ReadTimeout` is one name, with its module."""
    back = _ERROR_NAME_BACK.match(text[max(0, ending - 120) : ending][::-1])
    start = ending - back.end() if back else ending
    return start + len(text[start:ending]) - len(text[start:ending].lstrip("."))


def _message_end(text: str, start: int, end: int) -> int:
    colon = text.find(": ", start, end)
    ascii_message = 0 < colon + 2 < end and text[colon + 2].isascii()
    stop = (_ERROR_STOP_ASCII if ascii_message else _ERROR_STOP).search(text, min(start + 10, end), end)
    return stop.start() if stop else end


def _without_tail(written: str) -> str:
    """The message without the punctuation of the sentence around it."""
    while written and written[-1] in " .,;:)'’”":
        if written[-1] == ")" and written.count("(") >= written.count(")"):
            break
        if written[-1] == "'" and written.count("'") % 2 == 0:
            break
        written = written[:-1]
    return written
