"""The SQL of the two hottest paths as each database gets it: `python -m tests.replay.golden_sql` writes the files anew.

Read the difference before you commit it: a plan that was good for the old text may not be for the new one.
"""

import re
import textwrap
from pathlib import Path

from sqlalchemy.dialects import postgresql, sqlite

from threadmark.state.batches import append_statements
from threadmark.state.runs import claim_statements

__all__ = ["FOLDER", "golden_sql"]

FOLDER = Path(__file__).parent / "sql"
WIDTH = 110
_CLAUSE = re.compile(
    r" (?=(?:FROM|WHERE|ORDER BY|LIMIT|FOR UPDATE|SET|RETURNING|UNION ALL|VALUES) )|(?<=\),) (?=\w+ AS \()"
)
CLAIMS = {
    "postgresql": ("CLAIM", "CLAIM_RUN", "CLAIM_SUSPECT", "UNFOLDED"),
    "sqlite": ("ORPHANS", "DUE", "DUE_RUN", "SUSPECTS", "TAKE_THREADS", "TAKE_RUNS", "UNFOLDED"),
}
APPENDS = {
    "postgresql": ("LOCK", "ADVANCE_AND_INSERT", "ADVANCE_INSERT_AND_END", "LANDED_POSTGRESQL", "STANDS_POSTGRESQL"),
    "sqlite": ("ADVANCE", "ADVANCE_AND_END", "INSERT", "END", "LANDED_SQLITE", "STANDS_SQLITE"),
}


def golden_sql() -> dict[str, str]:
    """The text of each file by its name."""
    dialects = {"postgresql": postgresql.dialect(), "sqlite": sqlite.dialect()}  # type: ignore[no-untyped-call]
    files = {}
    for database, dialect in dialects.items():
        claims = {name: getattr(claim_statements, name).text(dialect) for name in CLAIMS[database]}
        appends = {name: getattr(append_statements, name) for name in APPENDS[database]}
        files[f"claim_{database}.sql"] = _file(claims)
        files[f"append_{database}.sql"] = _file(appends)
    return files


def _file(texts: dict[str, str]) -> str:
    return "\n".join(f"-- {name}\n{_folded(text)};\n" for name, text in texts.items())


def _folded(text: str) -> str:
    """One clause a line, indented by the brackets that are open; the toolkit's own lines know no depth."""
    clauses = [each.strip() for each in _CLAUSE.sub("\n", " ".join(text.split())).splitlines()]
    folded, depth = [], 0
    for clause in clauses:
        indent = "    " * depth
        folded += textwrap.wrap(
            clause,
            WIDTH,
            initial_indent=indent,
            subsequent_indent=indent + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        depth += clause.count("(") - clause.count(")")
    return "\n".join(folded)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in golden_sql().items():
        (FOLDER / name).write_text(text)
