"""The chain: each ledger's root covers its rows and the root before it, and survives the erasure of a text."""

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from threadmark.compaction.ledger.rows import Row
from threadmark.compaction.ledger.terms import Status
from threadmark.db.execution.pools import wanted_each

__all__ = [
    "GENESIS",
    "LedgerDamaged",
    "content_digest",
    "erase_rows",
    "hash_rows",
    "root_of",
    "seal_rows",
    "verify_rows",
]

GENESIS = hashlib.sha256(b"threadmark ledger").hexdigest()  #: what the first ledger of a thread is chained to

_NOTHING = "-"


class LedgerDamaged(Exception):
    """The rows are not those that were sealed; `where` names the first difference."""

    def __init__(self, where: str) -> None:
        super().__init__(f"the ledger does not verify: {where}")
        self.where = where


def content_digest(salt: str, canon: str, text: str) -> str:
    """SHA-256 of a row's words. The salt keeps a short word from being guessed by its digest after an erasure."""
    return hashlib.sha256(f"{salt}\0{canon}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()


def _aside(row: Row, salt: str) -> str:
    """What the seal knows of all that a row loses by an erasure beside its words; the first half goes with them."""
    later, promotion = (row.altered_to, row.superseded_by), (row.promotion_id,)
    return ".".join(
        hashlib.sha256(msgspec.json.encode((salt, *part))).hexdigest() if any(part) else _NOTHING
        for part in (later, promotion)
    )


def seal_rows(rows: Iterable[Row], secret: bytes) -> list[Row]:
    """The rows with salt and digest. `secret` is random bytes that are not kept: no salt can be made again from it."""
    sealed = []
    for number, row in enumerate(wanted_each(rows)):
        salt = hashlib.blake2b(number.to_bytes(8, "big"), key=secret, digest_size=16).hexdigest()
        digest = content_digest(salt, row.canon, row.text)
        # The row is new and not shared yet: a copy of each would cost as much as all the rest of the seal.
        msgspec.structs.force_setattr(row, "salt", salt)
        msgspec.structs.force_setattr(row, "digest", digest)
        msgspec.structs.force_setattr(row, "aside", _aside(row, salt))
        sealed.append(row)
    return sealed


def root_of(rows: Sequence[Row], previous_root: str) -> str:
    """SHA-256 over the previous root and all rows, in order, each by what an erasure leaves."""
    chain = hashlib.sha256(previous_root.encode())
    for row in wanted_each(rows):
        chain.update(hashlib.sha256(_persistent(row)).digest())
    return chain.hexdigest()


def _persistent(row: Row) -> bytes:
    """All of a row but its words, its salt, and what may change after the seal.

    Ledgers of before knew no `aside`, and their roots cover neither it nor what the rows say of earlier compactions.
    """
    since = (row.aside, row.salience, row.survived, row.lost_at) if row.aside else ()
    return msgspec.json.encode(
        (
            row.unit,
            row.cls,
            row.status_before or row.status,
            row.reason,
            row.critical,
            row.role,
            row.trust,
            row.negative,
            row.flipped,
            row.sources,
            row.kept_in,
            row.digest,
            *since,
        )
    )


def verify_rows(rows: Sequence[Row], previous_root: str, root: str) -> None:
    """Raises LedgerDamaged where a word, a status, a place or the order is not as it was sealed."""
    for row in rows:
        # Words that are gone cannot be compared here: the chain covers their digest, the journal is asked for the rest.
        if row.named or (row.status is Status.ERASED and not row.salt):
            if row.text or row.canon != row.digest or row.altered_to or row.superseded_by:
                raise LedgerDamaged(f"{row.unit} {row.row_id} gave its words up and has some")
            if row.aside and row.salt and _aside(row, row.salt).partition(".")[2] != row.aside.partition(".")[2]:
                raise LedgerDamaged(f"the promotion of {row.unit} {row.row_id}")
            continue
        if row.digest != content_digest(row.salt, row.canon, row.text):
            raise LedgerDamaged(f"the words of {row.unit} {row.row_id}")
        if row.aside and row.aside != _aside(row, row.salt):
            raise LedgerDamaged(f"the words beside {row.unit} {row.row_id}")
    if root_of(rows, previous_root) != root:
        raise LedgerDamaged("its root")


def hash_rows(rows: Iterable[Row]) -> list[Row]:
    """The rows with digests in the place of their words. Statuses, places, salts, names and the root stay."""
    return [row if row.named or (row.status is Status.ERASED and not row.salt) else _hash(row) for row in rows]


def _hash(row: Row) -> Row:
    return msgspec.structs.replace(
        row, text="", canon=row.digest, named=row.row_id, altered_to=None, superseded_by=None
    )


def erase_rows(rows: Iterable[Row], erased: frozenset[int]) -> list[Row]:
    """The rows after the entries at these `seq` were erased: what only they said loses its words and keeps its place.

    The number of rows and the root stay; the status becomes `erased`.
    """
    return [_erase(row) if _is_erased(row, erased) else row for row in rows]


def _is_erased(row: Row, erased: frozenset[int]) -> bool:
    if row.status is Status.ERASED and not row.salt:
        return False
    return bool(row.sources) and all(source.seq in erased for source in row.sources)


def _erase(row: Row) -> Row:
    return msgspec.structs.replace(
        row,
        text="",
        canon=row.digest,
        salt="",
        status=Status.ERASED,
        status_before=row.status_before or row.status,
        altered_to=None,
        superseded_by=None,
        promotion_id=None,
    )
