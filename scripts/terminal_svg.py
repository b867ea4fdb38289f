"""Draws the text of a terminal as an SVG picture:  make demo | python scripts/terminal_svg.py > docs/demo.svg

Headings (lines that begin at the margin) are bold, the kill is red and the verdict is green.
"""

import sys
from html import escape

FONT_PX, LINE_PX, CHAR_PX, MARGIN_PX = 13, 18, 7.83, 18
BACKGROUND, TEXT, HEADING, KILL, GOOD = "#0d1117", "#c9d1d9", "#ffffff", "#ff7b72", "#7ee787"


def main() -> None:
    """Read lines from standard input and write the picture to standard output."""
    lines = sys.stdin.read().strip("\n").splitlines()
    width = int(max(map(len, lines)) * CHAR_PX + 2 * MARGIN_PX)
    height = len(lines) * LINE_PX + 2 * MARGIN_PX
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="Output of make demo">'
    )
    print(f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>')
    print(f'<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="{FONT_PX}">')
    for number, line in enumerate(lines, start=1):
        if line:
            y = MARGIN_PX + number * LINE_PX - 5
            print(f'<text x="{MARGIN_PX}" y="{y}"{_style(line)}>{_spaced(line)}</text>')
    print("</g>\n</svg>")


def _spaced(line: str) -> str:
    """Browsers join ordinary spaces, and the columns of a table with them."""
    return escape(line).replace(" ", "\u00a0")


def _style(line: str) -> str:
    if "SIGKILL" in line or "(killed)" in line:
        return f' fill="{KILL}" font-weight="bold"'
    if line.startswith("OK"):
        return f' fill="{GOOD}" font-weight="bold"'
    return f' fill="{TEXT}"' if line.startswith(" ") else f' fill="{HEADING}" font-weight="bold"'


if __name__ == "__main__":
    main()
