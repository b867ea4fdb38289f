"""Removal in bounded commits: SQLite has one write lock, and on PostgreSQL long transactions hold back vacuum."""

from sqlalchemy import ColumnElement, Connection, Table, bindparam, delete, func, literal, select

__all__ = ["BYTE_COUNT", "ROW_COUNT", "RemovalBatch"]

#: Rows that one commit removes, and about how many bytes of text and documents in them.
ROW_COUNT = 500
BYTE_COUNT = 1_000_000


class RemovalBatch:
    """The rows that one commit removes, of one table after the other, until it is full."""

    def __init__(self) -> None:
        self._rows_left = ROW_COUNT
        self._bytes_left = BYTE_COUNT

    @property
    def is_full(self) -> bool:
        """Whether what is left belongs to the next commit."""
        return self._rows_left <= 0 or self._bytes_left <= 0

    def remove(self, connection: Connection, table: Table, *where: ColumnElement[bool]) -> bool:
        """Remove rows to which all conditions apply; returns whether none of them is left.

        At least one row goes, however large it is, unless the batch is full already.
        """
        key = list(table.primary_key.columns)
        names = [f"removed_{column.name}" for column in key]
        # One by one: SQLite looks through the whole table for pairs in a list.
        one = delete(table).where(*(column == bindparam(name) for column, name in zip(key, names, strict=True)))
        while not self.is_full:
            # The databases know the size of a value without reading it.
            rows = connection.execute(select(*key, _size(connection, table)).where(*where).limit(self._rows_left)).all()
            if not rows:
                return True
            was_last = len(rows) < self._rows_left
            chosen = []
            for row in rows:
                if self._bytes_left <= 0:
                    break
                chosen.append(tuple(row)[:-1])
                self._bytes_left -= int(row[-1])
            self._rows_left -= len(chosen)
            connection.execute(one, [dict(zip(names, each, strict=True)) for each in chosen])
            if was_last and len(chosen) == len(rows):
                return True
        return False


def _size(connection: Connection, table: Table) -> ColumnElement[int]:
    """About how many bytes a row's texts and documents have; SQLite counts the characters of a text."""
    length = func.length if connection.dialect.name == "sqlite" else func.octet_length
    size: ColumnElement[int] = literal(0)
    for column in table.columns:
        if column.type.python_type in {str, bytes}:
            size = size + func.coalesce(length(column), 0)
    return size
