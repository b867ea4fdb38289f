"""How a setting is declared: once, as a field of a class whose names are the names of environment variables."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic import AliasGenerator, Field, GetCoreSchemaHandler, PlainValidator, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from threadmark.user_error import UserError

__all__ = ["Declared", "Reads", "SettingsRefused", "Variable", "declared", "not_shown", "variables"]


class SettingsRefused(UserError, ValueError):
    """The environment has a value that is not valid; nothing was started."""


@dataclass(frozen=True, slots=True)
class Reads:
    """How the text of a variable becomes the value of its field; stands in the annotation.

    Attributes:
        value: Text to value; raises WrongValue.
        allowed: What is allowed, to follow "must be".
        shown: How a refused text is repeated; a secret is not, nor does it stand in the repr of settings.
    """

    value: Callable[[str], Any]
    allowed: str
    shown: Callable[[str], str] = repr

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> Any:
        return PlainValidator(self.value).__get_pydantic_core_schema__(source, handler)


def not_shown(_text: str) -> str:
    """What is said of a value that may be a secret."""
    return "not usable (its value is not shown)"


def declared(default: Any = None, *, example: str, shown: str | None = None, **more: Any) -> Any:
    """A setting, whose docstring says what it does.

    Args:
        default: The value without a variable.
        example: A text that is allowed.
        shown: The default as the documents show it.
        more: What else pydantic's `Field` takes.
    """
    if "default_factory" not in more:
        more["default"] = default
    # `:g`, because a default of seconds stands in the documents as an operator would write it.
    text = f"{default:g}" if isinstance(default, float) else str(default)
    return Field(json_schema_extra={"shown": shown or f"`{text}`", "example": example}, **more)


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable as the documents and the refusals show it."""

    name: str
    shown_default: str
    example: str
    meaning: str
    reads: Reads

    def refusal(self, text: str) -> str:
        """The sentence that refuses `text`: variable, value, what is allowed, an example."""
        given, allowed = self.reads.shown(text), self.reads.allowed
        return f"{self.name} is {given}, but must be {allowed}; for example {self.name}={self.example}"


class Declared(BaseSettings):
    """Settings that come from the mapping they are read from alone, never from the process's environment unasked."""

    model_config = SettingsConfigDict(
        frozen=True,
        # The library's own error is the cause of ours, and a traceback prints it: with a key that was mistyped.
        hide_input_in_errors=True,
        validate_default=False,
        case_sensitive=True,
        env_ignore_empty=True,
        enable_decoding=False,
        use_attribute_docstrings=True,
        alias_generator=AliasGenerator(validation_alias=lambda name: f"THREADMARK_{name.upper()}"),
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What is given to the constructor, and nothing else."""
        return (init_settings,)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """The settings of `environment`; an empty value counts as none. Raises SettingsRefused."""
        source = EnvSettingsSource(cls)
        source.env_vars = {name: text for name, text in environment.items() if text}
        try:
            return cls(**source())
        except ValidationError as error:
            first = error.errors()[0]
            by_name = {variable.name: variable for variable in variables(cls)}
            raise SettingsRefused(by_name[str(first["loc"][0])].refusal(first["input"])) from error

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Without what may hold a secret: settings end up in log lines and tracebacks."""
        open_names = {name for name, field in type(self).model_fields.items() if _reads(field.metadata).shown is repr}
        return ((name, value) for name, value in super().__repr_args__() if name in open_names)


def variables(kind: type[Declared]) -> tuple[Variable, ...]:
    """The variables of a class of settings, in the order of their declaration."""
    found = []
    for field in kind.model_fields.values():
        if not isinstance(field.json_schema_extra, dict):
            raise TypeError(f"{field.validation_alias} is not declared with `declared`")
        found.append(
            Variable(
                name=str(field.validation_alias),
                shown_default=str(field.json_schema_extra["shown"]),
                example=str(field.json_schema_extra["example"]),
                meaning=" ".join((field.description or "").split()),
                reads=_reads(field.metadata),
            )
        )
    return tuple(found)


def _reads(metadata: list[Any]) -> Reads:
    (reads,) = (each for each in metadata if isinstance(each, Reads))
    return reads
