"""Prompts."""

import mcp_types as types

from test_servers.registry import PromptAnswer, PromptItem, preset
from test_servers.world import Call


def said(content: str | types.ContentBlock) -> types.PromptMessage:
    """A message of the user."""
    return types.PromptMessage(role="user", content=types.TextContent(text=content) if isinstance(content, str) else content)


def fixed(definition: types.Prompt, *contents: str | types.ContentBlock) -> PromptItem:
    """A prompt that is always the same."""

    async def get(call: Call) -> PromptAnswer:
        return [said(content) for content in contents]

    return PromptItem(definition, get)


@preset("prompt", "simple_prompt")
def simple_prompt() -> PromptItem:
    """A prompt without arguments."""
    definition = types.Prompt(name="simple_prompt", description="A prompt without arguments")
    return fixed(definition, "Please summarise what this server can do.")


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

    async def get(call: Call) -> PromptAnswer:
        place = ", ".join(filter(None, (call.arguments["city"], call.arguments.get("state"))))
        return [said(f"What is the weather in {place}?")]

    return PromptItem(definition, get, {"city": ["Oslo", "Paris", "Zürich"], "state": ["Texas", "Utah"]})


@preset("prompt", "numbered_prompts")
def numbered_prompts(count: int = 12) -> list[PromptItem]:
    """`count` prompts named prompt_1, prompt_2, ..."""
    return [
        fixed(types.Prompt(name=f"prompt_{n}", description=f"Prompt number {n}"), f"This is prompt {n}")
        for n in range(1, count + 1)
    ]
