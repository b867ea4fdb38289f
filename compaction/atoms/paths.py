"""Finder of paths: absolute, relative, Windows, and file names with a known ending."""

# ruff: noqa: PLR2004 - the numbers are the shapes of the values that are looked for

import re
import unicodedata

from threadmark.compaction.atoms.atom import AtomClass
from threadmark.compaction.atoms.canvas import Canvas
from threadmark.compaction.keyword_prefilter import words

__all__ = ["find_paths"]

_BACK_MAX = 128
_SEGMENT = r"[\w.\-+@~%$={}\[\]*]"
_BACK = re.compile(r"[A-Za-z0-9_.\-~@$À-ɏ]{1,128}+")
_AHEAD = re.compile(rf"(?:/{_SEGMENT}{{0,128}}+){{1,40}}+")
_AHEAD_ASCII = re.compile(r"(?:/[A-Za-z0-9_.\-+@~%$={}\[\]*À-ɏ]{0,128}+){1,40}+")
_WINDOWS = re.compile(r"[A-Za-z](?<![A-Za-z0-9_][A-Za-z]):\\[^\s\"'<>|?*:;,，。；]{0,250}+")
_UNC = re.compile(r"\\(?<![\w\\]\\)\\[A-Za-z0-9.\-]{1,60}+\\[^\s\"'<>|?*:;,，。；]{1,200}+")
_DOT = re.compile(r"\.(?<=[\w)]\.)[A-Za-z]")
_NAME_BACK = re.compile(r"[\w.\-+]{1,120}+")
_NAME_BACK_ASCII = re.compile(r"[A-Za-z0-9_.\-+À-ɏ]{1,120}+")
_ENDING = re.compile(r"[A-Za-z][A-Za-z0-9]{0,9}+(?![A-Za-z0-9_(])")
_TRAILING = ".,;:!?*'\"…-}]"
_CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
#: A known ending right before such a script ends the path, whatever language the text was taken for.
_ENDED = re.compile(r"\.([A-Za-z][A-Za-z0-9]{0,9})(?=[\u3040-\u30ff\u4e00-\u9fff])")
_ENDINGS = frozenset(
    words("""
    py pyi js mjs cjs ts tsx jsx rs go java kt rb php c h cpp hpp cc cs swift scala sh bash zsh ps1 bat sql
    json jsonl ndjson yaml yml toml ini cfg conf env lock xml html htm css scss less md rst txt log csv tsv
    xlsx xls docx doc pptx ppt odt ods pdf png jpg jpeg gif svg webp bmp ico mp3 mp4 wav mov avi zip gz tgz
    tar bz2 xz 7z rar whl jar war db sqlite sqlite3 parquet avro proto graphql ipynb tf tfvars pem crt key
    csr p12 bak tmp pkl npy dll exe so dmg iso deb rpm apk vue svelte dockerfile ics eml sig asc
""")
)
#: A first segment that makes a relative path of two segments believable without an ending.
_ROOTS = frozenset(
    words("""
    src app lib test tests docs doc bin etc var usr home opt tmp config configs scripts data dist build
    node_modules public assets static templates migrations api internal cmd pkg packages .github .venv
    feature fix hotfix bugfix release origin
""")
)


def find_paths(canvas: Canvas) -> None:
    """All of them; a date, a fraction, a unit (`km/h`) and two words (`and/or`) are none."""
    text = canvas.text
    if "\\" in text:
        for pattern in (_WINDOWS, _UNC):
            for match in pattern.finditer(text):
                written = match[0].rstrip(_TRAILING + ")")
                canvas.add(AtomClass.PATH, match.start(), match.start() + len(written), written.rstrip("\\"))
    at = text.find("/")
    while at >= 0:
        at = text.find("/", _slash(canvas, at))
    _find_file_names(canvas)


def _slash(canvas: Canvas, at: int) -> int:
    """Look at the path around the slash at `at`; the place from which to look on."""
    text = canvas.text
    back = _BACK.match(text[max(0, at - _BACK_MAX) : at][::-1])
    start = at - back.end() if back else at
    before = text[start - 1] if start else " "
    # Within a script without blanks, ASCII alone is the path and the rest is the sentence.
    match = (_AHEAD_ASCII if _CJK.match(before) or canvas.language in ("zh", "ja") else _AHEAD).match(text, at)
    if match is None:
        return at + 1
    ended = next((each for each in _ENDED.finditer(text, at, match.end()) if each[1].lower() in _ENDINGS), match)
    end = ended.end()
    written = text[start:end].rstrip(_TRAILING)
    if canvas.is_free(start, start + len(written)) and before not in "/<:\\#&" and _is_path(written):
        form = unicodedata.normalize("NFC", written)
        canvas.add(AtomClass.PATH, start, start + len(written), form.rstrip("/") or "/")
    return end


def _is_path(written: str) -> bool:
    segments = [segment for segment in written.split("/") if segment]
    if not segments or not any(char.isalpha() for char in written):
        return False
    if written[0] in "/~" or written.startswith(("./", "../")):
        first = segments[0] if written[0] != "~" or len(segments) == 1 else segments[1]
        return len(first) > 1 or len(segments) > 1
    ending = segments[-1].rpartition(".")
    if ending[0] and ending[2].lower() in _ENDINGS:
        return True
    if segments[0] in _ROOTS and (len(segments) > 2 or written.endswith("/") or segments[0][0] == "."):
        return True
    lower = all(not segment[:1].isupper() or segment.isupper() for segment in segments)
    return len(segments) >= 4 or (segments[0] in _ROOTS and len(segments) == 2 and lower)


def _find_file_names(canvas: Canvas) -> None:
    text = canvas.text
    for match in _DOT.finditer(text):
        ending = _ENDING.match(text, match.start() + 1)
        if ending is None or ending[0].lower() not in _ENDINGS:
            continue
        window = text[max(0, match.start() - 120) : match.start()][::-1]
        back = (_NAME_BACK_ASCII if canvas.language in ("zh", "ja") else _NAME_BACK).match(window)
        if back is None:
            continue
        start, end = match.start() - back.end(), ending.end()
        if end < len(text) and text[end] == "." and end + 1 < len(text) and text[end + 1].isalnum():
            continue
        before = text[start - 1] if start else " "
        if before in "/\\@":
            continue
        canvas.add(AtomClass.PATH, start, end, unicodedata.normalize("NFC", text[start:end]))
