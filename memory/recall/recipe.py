"""The recipe of recall: every weight, in one versioned place, with the measurement that chose it."""

from dataclasses import dataclass, replace

__all__ = ["CURRENT", "Recipe", "weighed_for"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Weights of the signals. Each signal is scaled to its range among the candidates before it is weighed."""

    version: str
    text: float  #: the text with its date and speaker
    context: float  #: the text after the turn before it
    dense: float | None  #: the embedding; None: by the family of the embedder
    neighbour: float  #: what a turn borrows from the better of the turns around it
    speaker: float  #: said by the one speaker whom the question names
    date: float  #: observed in the window that the question names
    time_words: float  #: says when, if the question asks when
    session: float  #: the mean of its conversation's best
    session_best_count: int
    proposals: int  #: candidates asked of each arm
    neighbours_of: int  #: best of each arm whose neighbours become candidates


#: Chosen on five LoCoMo conversations (760 questions; by hand, differences below 0.01 are noise), default embedder:
#: recall@5 .704, recall@10 .796, MRR .633, beside BM25 alone .576, .656, .513. See
#: docs/decisions/0032-how-recall-ranks.md.
CURRENT = Recipe(
    version="2026-11",
    text=0.4,
    context=0.6,
    dense=None,
    neighbour=0.4,
    speaker=0.25,
    date=0.15,
    time_words=0.1,
    session=0.6,
    session_best_count=3,
    proposals=40,
    neighbours_of=10,
)

#: Embedders whose vectors tell little more than words do: a table of word pieces, and hashes of them.
_WORDS_ONLY = {"wordllama": 0.5, "hashed": 0.2}
#: A contextual embedder tells more, so it weighs more (MiniLM on the same data: recall@10 .807 at 1.0, .804 at 0.5).
_CONTEXTUAL = 0.9


def weighed_for(recipe: Recipe, embedder_name: str) -> Recipe:
    """The recipe with the weight that the dense signal deserves from this embedder, unless it has one."""
    if recipe.dense is not None:
        return recipe
    family = embedder_name.split("-", 1)[0]
    return replace(recipe, dense=_WORDS_ONLY.get(family, _CONTEXTUAL))
