"""Parameters of a tool: the JSON schema that its types make, and the validation of what a model sends.

Validation is strict, as JSON is: `"5"` is not a number, `true` is not 1, and an unknown name is refused. A date, a
uuid or an enum is written as the string that JSON has for it.
"""

import inspect
import json
import typing
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self, get_type_hints

import pydantic
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from threadmark.workers.agents.definition_errors import ToolRefused

__all__ = ["BadArguments", "Parameters"]

_WORST_COUNT_MAX = 8  #: mistakes reported at once
_SHOWN_LENGTH_MAX = 80


class BadArguments(ValueError):
    """What the model sent does not fit the parameters; the sentence is for the model."""

    def __init__(self, tool: str, mistakes: list[str]) -> None:
        super().__init__(f"bad arguments for {tool}: {'; '.join(mistakes)}")
        self.mistakes = mistakes


class _Untitled(GenerateJsonSchema):
    """Without the titles that repeat each name: the model reads, and we pay for, every token of a schema."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters of one function; `context_name` is the one that is handed in and not asked for."""

    schema: dict[str, Any]
    context_name: str | None
    model: type[pydantic.BaseModel]

    @classmethod
    def of(
        cls, tool: str, function: Callable[..., Any], injected: type, described: Mapping[str, str] | None = None
    ) -> Self:
        """Read a function's signature; `described` has what is said of its parameters, where their types do not say it.

        Raises ToolRefused for what no schema can say, and for a description of a parameter that is not there.
        """
        described = described or {}
        unknown = set(described) - set(inspect.signature(function).parameters)
        if unknown:
            raise ToolRefused(tool, f"describes {min(unknown)!r} under Args, which is no parameter: correct the name")
        context_name: str | None = None
        fields: dict[str, Any] = {}
        for parameter, typed in _typed(tool, function):
            annotation = typed
            if annotation is injected:
                if context_name is not None:
                    raise ToolRefused(tool, f"asks for its context twice: drop {parameter.name!r}")
                context_name = parameter.name
            else:
                # The name is an alias: as a field, a parameter called `schema` or `_id` would hit pydantic's own.
                default = ... if parameter.default is inspect.Parameter.empty else parameter.default
                declared = pydantic.Field(default=default, alias=parameter.name)
                if not _describes_itself(annotation) and parameter.name in described:
                    annotation = Annotated[annotation, pydantic.Field(description=described[parameter.name])]
                fields[f"p{len(fields)}"] = (annotation, declared)
        model = _model_of(tool, fields)
        return cls(schema=_schema_of(tool, model), context_name=context_name, model=model)

    def validate(self, tool: str, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Validated values by parameter name, defaults included. Raises BadArguments."""
        try:
            valid = self.model.model_validate_json(json.dumps(raw), strict=True)
        except pydantic.ValidationError as error:
            names = [each.alias or "" for each in self.model.model_fields.values()]
            raise BadArguments(tool, _mistakes(error, names)) from None
        return {each.alias or key: getattr(valid, key) for key, each in type(valid).model_fields.items()}


def _describes_itself(annotation: Any) -> bool:
    """Whether the type is annotated with a description of its own, which is nearer to it than the docstring."""
    return any(isinstance(each, FieldInfo) and each.description for each in getattr(annotation, "__metadata__", ()))


def _typed(tool: str, function: Callable[..., Any]) -> list[tuple[inspect.Parameter, Any]]:
    """Each parameter with its type."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ToolRefused(tool, f"has a type that cannot be resolved ({error}): import it at module level") from error
    typed: list[tuple[inspect.Parameter, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ToolRefused(tool, f"has the parameter {parameter}: name each parameter; arguments come by name")
        if parameter.name not in hints:
            raise ToolRefused(tool, f"has the untyped parameter {parameter.name!r}: annotate it, the schema needs it")
        if hints[parameter.name] in (Any, object):
            raise ToolRefused(tool, f"takes anything as {parameter.name!r}: give it a type that tells the model what")
        if isinstance(parameter.default, FieldInfo):
            raise ToolRefused(tool, f"has Field(…) as default of {parameter.name!r}: write Annotated[type, Field(…)]")
        typed.append((parameter, hints[parameter.name]))
    return typed


def _model_of(tool: str, fields: dict[str, Any]) -> type[pydantic.BaseModel]:
    config = pydantic.ConfigDict(extra="forbid", validate_default=True)
    try:
        return pydantic.create_model("Arguments", __config__=config, **fields)
    except (PydanticUserError, TypeError) as error:
        raise ToolRefused(tool, f"has a parameter of a type that JSON cannot carry: {_first_line(error)}") from error


def _schema_of(tool: str, model: type[pydantic.BaseModel]) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a default that JSON cannot say is only warned about
            schema = model.model_json_schema(by_alias=True, schema_generator=_Untitled)
    except (PydanticUserError, UserWarning) as error:
        raise ToolRefused(tool, f"has a parameter that no JSON schema can say: {_first_line(error)}") from error
    schema.pop("title", None)
    schema.setdefault("properties", {})
    return schema


def _mistakes(error: pydantic.ValidationError, names: list[str]) -> list[str]:
    mistakes = [_mistake(typing.cast("dict[str, Any]", each), names) for each in error.errors(include_url=False)]
    if len(mistakes) > _WORST_COUNT_MAX:
        mistakes[_WORST_COUNT_MAX:] = [f"and {len(mistakes) - _WORST_COUNT_MAX} more"]
    return mistakes


def _mistake(error: dict[str, Any], names: list[str]) -> str:
    place = ".".join(str(each) for each in error["loc"])[:_SHOWN_LENGTH_MAX]
    match error["type"]:
        case "missing":
            return f"`{place}` is missing"
        case "extra_forbidden":
            return f"`{place}` is not a parameter; the parameters are {', '.join(names) or 'none'}"
        case "json_invalid":
            return "they hold a lone surrogate or are nested too deep"
        case _:
            shown = json.dumps(error["input"], ensure_ascii=False, default=str)
            if len(shown) > _SHOWN_LENGTH_MAX:
                shown = shown[:_SHOWN_LENGTH_MAX] + "…"
            return f"`{place}` is {shown}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
