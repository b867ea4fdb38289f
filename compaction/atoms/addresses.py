"""Finders of URLs, e-mail addresses, handles and hosts.

Each starts from a rare mark (`://`, `@`, a dot between letters) and looks a bounded way back and ahead.
"""

# ruff: noqa: PLR2004 - the numbers are the shapes of the values that are looked for

import re
import unicodedata

from threadmark.compaction.atoms.atom import AtomClass
from threadmark.compaction.atoms.canvas import Canvas
from threadmark.compaction.keyword_prefilter import words

__all__ = ["find_emails_and_handles", "find_hosts", "find_urls"]

_SCHEME_BACK = re.compile(r"[A-Za-z0-9+.\-]{0,15}[A-Za-z](?![A-Za-z0-9])")
_URL_REST = re.compile(r"[^\s<>\"'`“”„«»（）「」『』【】，。；！？、\u3000{}|\\^]{1,2048}+")
_URL_CJK_STOP = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_TRAILING = ".,;:!?*_~)]'…"
_WWW = re.compile(r"www\.(?<![\w.]www\.)[A-Za-z0-9\-]{1,63}+\.")
_MAIL_MARK = re.compile(r"[@＠]")
_LOCAL_BACK = re.compile(r"[A-Za-z0-9._%+\-'À-ɏ]{1,64}+")
_DOMAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9\-]{0,62}+\.){1,8}+[A-Za-z]{2,24}+(?![A-Za-z0-9])")
_LABELS = re.compile(r"[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63}){1,8}")
_HANDLE = re.compile(r"[A-Za-z][A-Za-z0-9_\-]{1,38}+(?:/[A-Za-z0-9][A-Za-z0-9\-]{0,38}+)?+(?![A-Za-z0-9_À-ɏ@])")
_HOST_DOT = re.compile(r"\.(?<=[A-Za-z0-9]\.)[a-z]")
_HOST_BACK = re.compile(r"[A-Za-z0-9\-.]{1,200}+")
_HOST_AHEAD = re.compile(r"[A-Za-z0-9\-]{1,63}+(?:\.[A-Za-z0-9\-]{1,63}+){0,8}+(?![A-Za-z0-9_])")
_PORT = re.compile(r":\d{2,5}(?![\d:])")
_LOCALHOST = re.compile(r"localhost(?<![\w.\-]localhost)(?::\d{2,5}+)?+(?![\w.\-]\w)")
_IPV6 = re.compile(r":(?<=[0-9a-fA-F]:|::)")
_IPV6_BACK = re.compile(r"[0-9a-fA-F:]{1,40}")
_IPV6_RUN = re.compile(r"[0-9a-fA-F:]{2,45}+(?![\w:])")
_BACK_MAX = 200
#: Endings that make dotted words a host; a file extension or a sentence without a blank is none.
_TOP_LEVELS = frozenset(
    words("""
    com org net io dev edu gov mil int info biz app ai co cloud tech xyz site online shop de fr es cn jp uk
    eu us ch at it nl be pl se no dk fi pt br mx ca au nz in kr ru ie cz gr hu ro tr tw hk sg internal local
    lan corp home intranet localdomain example test invalid arpa svc
""")
)
#: Endings that are more often a file (`notes.md`, `main.rs`) than a country.
_ODD_FIRST = frozenset(["e.g", "i.e", "z.b", "u.a", "d.h", "p.ex"])


def find_urls(canvas: Canvas) -> None:
    """`scheme://…` and `www.…`, without the punctuation of the sentence around them."""
    text = canvas.text
    at = text.find("://")
    while at >= 0:
        back = _SCHEME_BACK.match(text[max(0, at - 16) : at][::-1])
        start = at - back.end() if back else at
        rest = _URL_REST.match(text, at + 3)
        if back and rest:
            _add_url(canvas, start, rest.end())
        at = text.find("://", at + 3)
    for match in _WWW.finditer(text) if "www." in text else ():
        rest = _URL_REST.match(text, match.end())
        if rest and canvas.is_free(match.start(), match.end()):
            _add_url(canvas, match.start(), rest.end())


def _add_url(canvas: Canvas, start: int, end: int) -> None:
    written = canvas.text[start:end]
    scheme_end = written.find("://") + 3 if "://" in written else 0
    # A sentence in a script without blanks goes on right behind the address; a path in that script starts with "/".
    stray = _URL_CJK_STOP.search(written, scheme_end)
    if stray and written[stray.start() - 1] not in "/=?&%-_":
        written = written[: stray.start()]
    while written and written[-1] in _TRAILING:
        if written[-1] == ")" and written.count("(") >= written.count(")"):
            break
        if written[-1] == "]" and written.count("[") >= written.count("]"):
            break
        written = written[:-1]
    if len(written) > scheme_end:
        canvas.add(AtomClass.URL, start, start + len(written), _url_form(written))


def _url_form(written: str) -> str:
    scheme, mark, rest = written.partition("://")
    if not mark:
        scheme, rest = "http", written
    host, slash, path = rest.partition("/")
    if path == "":
        slash = ""
    return f"{scheme.lower()}://{host.lower()}{slash}{path}"


def find_emails_and_handles(canvas: Canvas) -> None:
    """`local@domain` as an address; `@name` that follows no word as a handle."""
    text = canvas.text
    for mark in _MAIL_MARK.finditer(text) if "@" in text or not canvas.is_ascii else ():
        at = mark.start()
        local = _LOCAL_BACK.match(text[max(0, at - 64) : at][::-1])
        if local:
            length = len(text[at - local.end() : at].lstrip(".-%'"))
            domain = _LABELS.match(text, at + 1)
            if domain and length:
                _add_email(canvas, at - length, at + 1, domain.end())
            continue
        handle = _HANDLE.match(text, at + 1)
        if handle:
            written = text[at : handle.end()].rstrip("-_")
            canvas.add(AtomClass.HANDLE, at, at + len(written), written.casefold())


def _add_email(canvas: Canvas, start: int, domain_start: int, end: int) -> None:
    text = canvas.text
    domain = text[domain_start:end].rstrip("-.")
    top = domain.rpartition(".")[2]
    if len(top) >= 2 and top.isalpha():
        end = domain_start + len(domain)
        canvas.add(AtomClass.EMAIL, start, end, unicodedata.normalize("NFKC", text[start:end]).casefold())


def find_hosts(canvas: Canvas) -> None:
    """Domain names with a known ending, `localhost` and IPv6 addresses, each with its port."""
    text = canvas.text
    done = 0
    for match in _HOST_DOT.finditer(text):
        dot = match.start()
        if dot < done:
            continue
        back = _HOST_BACK.match(text[max(0, dot - _BACK_MAX) : dot][::-1])
        ahead = _HOST_AHEAD.match(text, dot + 1)
        if back and ahead:
            done = ahead.end()
            _add_host(canvas, dot - back.end(), ahead.end())
    for match in _LOCALHOST.finditer(text) if "localhost" in text else ():
        canvas.add(AtomClass.HOST, match.start(), match.end(), match[0].lower())
    # An address has seven colons, or two side by side.
    if "::" in text or text.count(":") >= 7:
        _find_ipv6(canvas)


def _add_host(canvas: Canvas, start: int, end: int) -> None:
    text = canvas.text
    name = text[start:end]
    trimmed = name.lstrip(".-")
    start += len(name) - len(trimmed)
    labels = trimmed.lower().split(".")
    if labels[-1] not in _TOP_LEVELS or not all(labels) or trimmed.lower() in _ODD_FIRST:
        return
    before = text[start - 1] if start else " "
    if before in "/\\_@$" or (end < len(text) and text[end] in "(_@"):
        return
    port = _PORT.match(text, end)
    end = port.end() if port else end
    canvas.add(AtomClass.HOST, start, end, text[start:end].lower())


def _find_ipv6(canvas: Canvas) -> None:
    text = canvas.text
    done = 0
    for match in _IPV6.finditer(text):
        if match.start() < done:
            continue
        back = _IPV6_BACK.match(text[max(0, match.start() - 40) : match.start()][::-1])
        start = match.start() - (back.end() if back else 0)
        run = _IPV6_RUN.match(text, start)
        if run is None or (start and (text[start - 1].isalnum() or text[start - 1] in "_")):
            continue
        done = run.end()
        written = run[0]
        if (
            (written.count(":") == 7 and "::" not in written)
            or (written.count("::") == 1 and 2 <= written.count(":") <= 7 and len(written) >= 3)
        ) and all(len(group) <= 4 for group in written.split(":")):
            canvas.add(AtomClass.HOST, start, run.end(), written.lower())
