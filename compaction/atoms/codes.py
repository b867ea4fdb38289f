"""Finders of UUIDs, hashes, reference ids, versions with a name, and identifiers of code."""

# ruff: noqa: PLR2004 - the numbers are the shapes of the values that are looked for

import re
import unicodedata

from threadmark.compaction.atoms.atom import AtomClass
from threadmark.compaction.atoms.canvas import Canvas
from threadmark.compaction.atoms.measures import UNITS
from threadmark.compaction.keyword_prefilter import words

__all__ = ["find_backticks", "find_hashes", "find_identifiers", "find_references", "find_uuids", "looks_like_command"]

_UUID_MIDDLE = re.compile(r"-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?![0-9a-zA-Z\-])")
_UUID_FIRST = re.compile(r"(?<![0-9A-Za-z\-])[0-9a-fA-F]{8}\Z")
_HEX = re.compile(r"[0-9a-fA-F](?<![A-Za-z0-9_\-]\w)[0-9a-fA-F]{6,127}+(?![A-Za-z0-9_À-ɏ\-])")
_HEX_0X = re.compile(r"0x(?<![A-Za-z0-9_]0x)[0-9a-fA-F]{2,64}+(?![A-Za-z0-9_À-ɏ])")
_HEX_TAGGED = re.compile(r":(?:(?<=sha256:)|(?<=sha512:)|(?<=sha1:)|(?<=md5:))[0-9a-fA-F]{7,128}+(?![A-Za-z0-9_À-ɏ])")
_REFERENCE = re.compile(
    r"[A-Z](?<![A-Za-z0-9_\-/.]\w)[A-Z0-9]{0,9}+(?:[-_][A-Z0-9]{1,10}){0,4}(?:-[a-z0-9]{4}){0,3}[-_#]\d[\dA-Za-z]{0,15}+"
    r"(?:[-/]\d[\dA-Za-z]{0,11}+){0,3}(?![A-Za-z0-9_])"
)
_GHSA = re.compile(r"GHSA(?:-[0-9a-z]{4}){3}(?![A-Za-z0-9_À-ɏ])")
_NUMBER_SIGN = re.compile(r"[#№＃](?<![A-Za-z0-9_&/#][#№＃])[ ]?\d{1,12}+(?![A-Za-z0-9_.][A-Za-z0-9_])")
_LABELS = frozenset(
    words("""
    order ticket invoice case pr issue bestellung rechnung facture commande pedido factura auftrag vorgang ticketnummer
    rechnungsnummer kundennummer bestellnummer rfc pep
    """)
)
_LABELS_CJK = tuple(
    label + number
    for label in words("订单 工单 发票 单 编 注文 請求書 伝票 チケット")
    for number in ("", "号", "番号", "编号")
    if len(label + number) > 1
)
_NUMBER_WORDS = frozenset(words("no nr number nummer nº n° número numéro id"))
_LABEL_CHARACTERS = 30
_LONG_NUMBER = re.compile(r"\d(?<![A-Za-z0-9.,/_]\d)[A-Z0-9\-]{2,15}+(?![A-Za-z0-9_.,/]\d|[a-z])")
_NO_LETTERS = frozenset(["", " ", ":", "\n", "="])
_LETTERS_BACK = re.compile(r"-?[A-Z]{0,4}")
_NOT_REFERENCES = frozenset(
    words("""
    UTF SHA ISO COVID GPT HTTP MP BASE TLS SSL IPV MD X AES RSA UTC GMT EC ECMA AK
""")
)
_SNAKE = re.compile(r"_(?<=[A-Za-z0-9]_)[A-Za-z0-9]")
_DUNDER = re.compile(r"__[a-z][a-z0-9_]{1,40}__(?![A-Za-z0-9_À-ɏ])")
_HUMP = re.compile(r"[A-Z](?<=[a-z0-9][A-Z])")
_CAMEL_BACK = re.compile(r"[a-z0-9]{0,30}[a-z](?![A-Za-z0-9_@.$À-ɏ])")
_CAMEL_AHEAD = re.compile(r"[A-Z][A-Za-z0-9]{1,60}+(?![A-Za-z0-9_])")
_CALL = re.compile(r"\((?<=[A-Za-z0-9_]\()(?:[^()\n\u3000-\u9fff]{0,60}+)\)")
_FLAG = re.compile(r"--(?<![\w\-]--)[a-z][a-z0-9]{0,30}+(?:-[a-z0-9]{1,30}+){0,6}+(?:=[^\s,;`\"')，。]{1,80}+)?+")
_DOTTED_BACK = re.compile(r"[A-Za-z0-9_.:]{1,120}+")
_DOTTED_AHEAD = re.compile(r"[A-Za-z0-9_]{0,80}+(?:(?:\.|::|->)[A-Za-z_][A-Za-z0-9_]{0,80}+){0,6}+")
_ENV = re.compile(r"\$\{?[A-Z][A-Z0-9_]{1,60}+\}?")
_BACKTICK = re.compile(r"`(?<!``)([^`\n]{1,300}+)`(?!`)")
_PLAIN_WORD = re.compile(r"[a-z]{1,20}(?:-[a-z]{1,20}){0,3}\Z")
_BRANDS = frozenset(
    words("""
    iPhone iPad iOS macOS eBay iCloud iMac watchOS tvOS
""")
)
_COMMAND_WORDS = frozenset(
    words("""
    git npm npx yarn pnpm pip pip3 uv python python3 node docker kubectl helm terraform curl wget ssh scp
    rsync psql mysql redis-cli make cargo go rustc mvn gradle systemctl journalctl apt apt-get brew yum dnf
    sudo chmod chown cp mv rm mkdir ls cd cat grep sed awk find tar ps kill export source alembic pytest ruff
    mypy aws gcloud az ansible ansible-playbook vim nano echo touch tail head crontab dig ping nslookup
    openssl ffmpeg bundle rails composer php artisan dotnet java gh vault
""")
)


def looks_like_command(line: str) -> bool:
    """Whether the line starts with a known program and goes on."""
    first, blank, rest = line.partition(" ")
    return bool(blank and rest.strip()) and first in _COMMAND_WORDS


def find_uuids(canvas: Canvas) -> None:
    """UUIDs in their usual form with four hyphens."""
    text = canvas.text
    for match in _UUID_MIDDLE.finditer(text) if text.count("-") >= 4 else ():
        start = match.start() - 8
        if start >= 0 and _UUID_FIRST.search(text[max(0, start - 1) : match.start()]):
            canvas.add(AtomClass.UUID, start, match.end(), text[start : match.end()].lower())


def find_hashes(canvas: Canvas) -> None:
    """Hexadecimal digests, whole or shortened: a short one needs both letters and digits."""
    text = canvas.text
    for match in _HEX_TAGGED.finditer(text) if "sha" in text or "md5:" in text else ():
        canvas.add(AtomClass.HASH, match.start() + 1, match.end(), match[0][1:].lower())
    for match in _HEX.finditer(text):
        written = match[0]
        letters = sum(char.isalpha() for char in written)
        digest = len(written) in (32, 40, 56, 64, 96, 128)
        if (letters and letters < len(written)) or (digest and letters):
            if "e" in written and letters == 1 and not digest:
                continue  # 1234e56 is a number with an exponent
            canvas.add(AtomClass.HASH, match.start(), match.end(), written.lower())
    for match in _HEX_0X.finditer(text) if "0x" in text else ():
        canvas.add(AtomClass.HASH, match.start(), match.end(), match[0].lower())


def find_references(canvas: Canvas) -> None:
    """`INV-000412`, `CVE-2024-1234`, `#123`, and the number behind "order" or "invoice" in six languages."""
    text = canvas.text
    for match in _GHSA.finditer(text) if "GHSA" in text else ():
        canvas.add(AtomClass.REFERENCE, match.start(), match.end(), match[0])
    for match in _REFERENCE.finditer(text) if "-" in text or "_" in text or "#" in text else ():
        letters = re.split(r"[-_#]", match[0], maxsplit=1)[0]
        if letters not in _NOT_REFERENCES and (len(letters) > 1 or len(match[0]) > 4):
            canvas.add(AtomClass.REFERENCE, match.start(), match.end(), match[0].upper())
    for match in _NUMBER_SIGN.finditer(text) if "#" in text or not canvas.is_ascii else ():
        form = unicodedata.normalize("NFKC", match[0]).replace(" ", "").replace("No", "#")
        canvas.add(AtomClass.REFERENCE, match.start(), match.end(), form)
    for match in _LONG_NUMBER.finditer(text):
        if canvas.is_free(match.start(), match.end()):
            _add_labelled(canvas, match.start(), match.end())


def _add_labelled(canvas: Canvas, digits: int, end: int) -> None:
    """Keep the number if a word such as "order" stands right before it."""
    text = canvas.text
    start = digits
    if text[digits - 1 : digits] not in _NO_LETTERS:
        letters = _LETTERS_BACK.match(text[max(0, digits - 5) : digits][::-1])
        start -= letters.end() if letters else 0
    if _is_label(text[max(0, start - _LABEL_CHARACTERS) : start]) and sum(map(str.isdigit, text[digits:end])) >= 3:
        canvas.add(AtomClass.REFERENCE, start, end, text[start:end].upper())


def _is_label(before: str) -> bool:
    """Whether the text ends in a word that numbers of things follow: `order`, `Rechnung Nr.`, `订单号`."""
    before = before.rstrip(": ：")
    if not before or before.endswith(_LABELS_CJK):
        return bool(before)
    spoken = before.lower().rsplit(None, 2)[-2:]
    last = spoken[-1].strip(".,:;()") if spoken else ""
    if last in _LABELS:
        return True
    return len(spoken) > 1 and last in _NUMBER_WORDS and spoken[0].strip(".,:;()") in _LABELS


def find_backticks(canvas: Canvas) -> None:
    """What stands between backticks, unless it is a value of another class (a path, an address, a number)."""
    for match in _BACKTICK.finditer(canvas.text) if "`" in canvas.text else ():
        written = match[1].strip()
        start = match.start(1) + len(match[1]) - len(match[1].lstrip())
        if looks_like_command(written):
            canvas.add(AtomClass.COMMAND, start, start + len(written), " ".join(written.split()))
        elif canvas.is_free(start, start + len(written)) and _is_code(written):
            canvas.add(AtomClass.CODE, start, start + len(written), " ".join(written.split()))


def _is_code(written: str) -> bool:
    return any(char.isalpha() for char in written) and not written.isdigit()


def find_identifiers(canvas: Canvas) -> None:
    """snake_case, camelCase, SCREAMING_CASE, calls, flags and `$VARIABLES` in plain text."""
    text = canvas.text
    done = 0
    for match in _SNAKE.finditer(text) if "_" in text else ():
        if match.start() >= done:
            done = _grow(canvas, match.start())
    for match in _CALL.finditer(text) if "(" in text else ():
        _add_call(canvas, match.start(), match.end())
    for mark, pattern in (("--", _FLAG), ("$", _ENV), ("__", _DUNDER)):
        for match in pattern.finditer(text) if mark in text else ():
            canvas.add(AtomClass.CODE, match.start(), match.end(), match[0])
    for match in _HUMP.finditer(text):
        back = _CAMEL_BACK.match(text[max(0, match.start() - 32) : match.start()][::-1])
        ahead = _CAMEL_AHEAD.match(text, match.start())
        if back and ahead:
            start = match.start() - back.end()
            name = text[start : ahead.end()]
            if name not in _BRANDS and name.lower() not in UNITS:
                canvas.add(AtomClass.CODE, start, ahead.end(), name)


def _grow(canvas: Canvas, at: int) -> int:
    """Take the whole dotted identifier around `at`; where to look on."""
    text = canvas.text
    back = _DOTTED_BACK.match(text[max(0, at - 120) : at][::-1])
    start = at - back.end() if back else at
    ahead = _DOTTED_AHEAD.match(text, at)
    end = ahead.end() if ahead else at + 1
    start += len(text[start:end]) - len(text[start:end].lstrip(".:0123456789"))
    if end < len(text) and text[end] == "(":
        closing = _CALL.match(text, end)
        end = closing.end() if closing else end
    start -= text[start - 1 : start] == "$"
    canvas.add(AtomClass.CODE, start, end, text[start:end])
    return end


def _add_call(canvas: Canvas, opening: int, end: int) -> None:
    """`name(…)` without a blank before the bracket; one plain word needs empty brackets: "file(s)" is no call."""
    text = canvas.text
    back = _DOTTED_BACK.match(text[max(0, opening - 120) : opening][::-1])
    if back is None:
        return
    start = opening - back.end()
    name = text[start:opening].lstrip(".:0123456789")
    start = opening - len(name)
    inside = text[opening + 1 : end - 1]
    if not name or (inside and "." not in name and _PLAIN_WORD.match(name) and not re.search(r"[=,\"'_(]", inside)):
        return
    if len(name) > 1 and not name.isupper():
        canvas.add(AtomClass.CODE, start, end, text[start:end])
