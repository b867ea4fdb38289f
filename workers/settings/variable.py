"""What one environment variable is: its name, its values, and how a wrong one is refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from threadmark.user_error import UserError
from threadmark.workers.settings.values import WrongValue

__all__ = ["SettingsRefused", "Variable", "not_shown"]


class SettingsRefused(UserError, ValueError):
    """The environment cannot be honoured as it stands; nothing was started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One environment variable.

    Attributes:
        name: Of the variable.
        field: Of `Settings`.
        default: The text that stands for no value; None when there is none.
        shown_default: The default as a reader is told it.
        read_value: Text to value; raises WrongValue.
        allowed: What is allowed, to follow "must be".
        example: A value that is allowed.
        meaning: What it does, a sentence.
        shown: How a refused value is repeated; a secret is not.
    """

    name: str
    field: str
    default: str | None
    shown_default: str
    read_value: Callable[[str], Any]
    allowed: str
    example: str
    meaning: str
    shown: Callable[[str], str] = repr

    def read(self, environment: Mapping[str, str]) -> Any:
        """The value in `environment`, or the default. Raises SettingsRefused."""
        text = environment.get(self.name) or self.default
        if text is None:
            return None
        try:
            return self.read_value(text)
        except WrongValue as error:
            raise SettingsRefused(
                f"{self.name} is {self.shown(text)}, but must be {self.allowed}; for example {self.name}={self.example}"
            ) from error


def not_shown(_text: str) -> str:
    """What is said of a value that may be a secret."""
    return "not usable (its value is not shown)"
