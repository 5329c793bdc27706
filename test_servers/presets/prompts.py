"""Prompts."""

import mcp_types as types

from test_servers.registry import PromptItem, preset


def _said(text: str) -> types.PromptMessage:
    return types.PromptMessage(role="user", content=types.TextContent(text=text))


@preset("prompt", "simple_prompt")
def simple_prompt() -> PromptItem:
    """A prompt without arguments."""
    definition = types.Prompt(name="simple_prompt", description="A prompt without arguments")
    return PromptItem(definition, lambda arguments: [_said("Please summarise what this server can do.")])


@preset("prompt", "args_prompt")
def args_prompt() -> PromptItem:
    """A prompt with one required and one optional argument, both with completion."""
    definition = types.Prompt(
        name="args_prompt",
        description="Asks about the weather of a city",
        arguments=[
            types.PromptArgument(name="city", description="Name of a city", required=True),
            types.PromptArgument(name="state", description="State of the city", required=False),
        ],
    )

    def get(arguments: dict[str, str]) -> list[types.PromptMessage]:
        place = ", ".join(filter(None, (arguments["city"], arguments.get("state"))))
        return [_said(f"What is the weather in {place}?")]

    return PromptItem(definition, get, {"city": ["Oslo", "Paris", "Zürich"], "state": ["Texas", "Utah"]})


@preset("prompt", "numbered_prompts")
def numbered_prompts(count: int = 12) -> list[PromptItem]:
    """`count` prompts named prompt_1, prompt_2, ..."""

    def item(number: int) -> PromptItem:
        definition = types.Prompt(name=f"prompt_{number}", description=f"Prompt number {number}")
        return PromptItem(definition, lambda arguments: [_said(f"This is prompt {number}")])

    return [item(number) for number in range(1, count + 1)]
