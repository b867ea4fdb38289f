"""When two names are the same name: equal code points after NFC, and nothing else. Pure.

An accent, a capital letter, a superscript or a space more is another subject, attribute, label or key. What is kept and
returned is the spelling that was sent; this one is only compared. Folding (`terms.folded`) is for search alone.
"""

import unicodedata
from collections.abc import Iterable

__all__ = ["identity_key", "identity_labels", "same_words"]


def identity_key(name: str) -> str:
    """The one spelling by which a name is compared."""
    return unicodedata.normalize("NFC", name)


def identity_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """The labels of a namespace, each as it is compared."""
    return tuple(map(identity_key, labels))


def same_words(text: str) -> str:
    """One spelling of a text for telling a repetition: whatever its capitals and its spacing. Signs keep their form."""
    return " ".join(unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower()).split())
