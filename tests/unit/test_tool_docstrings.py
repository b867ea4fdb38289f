"""What a tool's docstring tells the model: of the tool, and under `Args:` of each parameter."""

from typing import Annotated, Any

import pytest
from pydantic import Field

from threadmark import DefinitionRefused, Effect, Tool, ToolContext, tool


@tool(effect=Effect.PURE)
async def search(
    query: str,
    context: ToolContext,
    limit: Annotated[int, Field(ge=1, description="from the type")] = 5,
    kinds: list[str] | None = None,
    plain: bool = False,
) -> list[str]:
    """Search the catalogue.

    Titles come before texts.

    Args:
        query (str): The words, in any order;
            a phrase stands in quotation marks.
        context: Not for the model.
        limit: From the docstring.
        kinds: Which kinds: `book`, `film`.

    Returns:
        Titles, best first.
    """
    return [query][:limit]


def described(of: Tool) -> dict[str, Any]:
    """The descriptions of the parameters in the schema."""
    return {name: each.get("description") for name, each in of.parameters["properties"].items()}


def test_args_describe_the_parameters() -> None:
    """Lines that are indented further belong to the parameter before; a description in the type is nearer and stays."""
    assert described(search) == {
        "query": "The words, in any order; a phrase stands in quotation marks.",
        "limit": "from the type",
        "kinds": "Which kinds: `book`, `film`.",
        "plain": None,
    }


def test_the_description_of_the_tool_is_the_rest() -> None:
    """Each token is paid for with each call of the model: nothing is said twice."""
    assert search.description == (
        "Search the catalogue.\n\nTitles come before texts.\n\nReturns:\n    Titles, best first."
    )
    assert search.definition["function"]["description"] == search.description


def test_a_docstring_without_args_is_the_description() -> None:
    """The word in a sentence begins no section."""

    @tool(effect=Effect.PURE)
    async def plain(a: int) -> int:
        """Add. Args: are not here."""
        return a

    assert (plain.description, described(plain)) == ("Add. Args: are not here.", {"a": None})


def test_a_description_of_a_parameter_that_is_not_there_is_refused() -> None:
    """A renamed parameter would lose its description without a word."""
    with pytest.raises(DefinitionRefused, match="describes 'amonut' under Args, which is no parameter"):

        @tool(effect=Effect.PURE)
        async def pay(amount: int) -> int:
            """Pay.

            Args:
                amonut: In cents.
            """
            return amount


def test_a_model_sees_a_reference_with_its_description() -> None:
    """A parameter whose type is a definition of its own has the description beside the reference."""
    from enum import Enum

    class Colour(Enum):
        RED = "red"

    async def paint(colour: Colour) -> str:
        """Paint.

        Args:
            colour: Of the wall.
        """
        return colour.value

    paint.__annotations__["colour"] = Colour
    assert described(tool(effect=Effect.PURE)(paint)) == {"colour": "Of the wall."}
