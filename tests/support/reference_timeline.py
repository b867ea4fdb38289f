"""An independent account of a single-valued attribute: time as a row of cells, painted over by each statement."""

from dataclasses import dataclass, field

CELL_COUNT = 60
Cell = tuple[str, int] | None  #: a value and the piece it belongs to


@dataclass
class Painting:
    """What is believed of each cell now, and after every step so far."""

    cells: list[Cell] = field(default_factory=lambda: [None] * CELL_COUNT)
    steps: list[list[Cell]] = field(default_factory=list)
    pieces: int = 0

    def state(self, value: str, begin: int, end: int | None) -> None:
        """Paint [begin, end); without an end, up to where the next piece begins.

        What is left of a piece to the right of the paint is a piece of its own.
        """
        later = [at for at in range(begin + 1, CELL_COUNT) if self._begins(at)]
        stop = min(later, default=CELL_COUNT) if end is None else end
        held = self.cells[begin]
        is_same = held is not None and held[0] == value
        if not (is_same and all(self.cells[at] == held for at in range(begin, stop))):
            self._paint(value, begin, stop)
        self.steps.append(list(self.cells))

    def _paint(self, value: str, begin: int, stop: int) -> None:
        beyond = self.cells[stop] if stop < CELL_COUNT else None
        if beyond is not None and beyond == self.cells[stop - 1]:
            self.pieces += 1
            for at in range(stop, CELL_COUNT):
                if self.cells[at] != beyond:
                    break
                self.cells[at] = (beyond[0], self.pieces)
        self.pieces += 1
        self.cells[begin:stop] = [(value, self.pieces)] * (stop - begin)

    def _begins(self, at: int) -> bool:
        return self.cells[at] is not None and self.cells[at] != self.cells[at - 1]

    def value(self, cell: int, step: int) -> str | None:
        """What was believed after `step` (0 is before any) to be true of a cell."""
        held = self.steps[step - 1][cell] if step else None
        return None if held is None else held[0]
