"""subscriptions/listen: what is granted, what is tagged, and how a stream ends when the server does."""

import asyncio

import mcp_types as types
from mcp.client import Client
from mcp.shared.subscriptions import ResourcesListChanged

from test_servers.compose import compose
from test_servers.config import parse


def config(**more: object) -> object:
    return {
        "serverInfo": {"name": "test", "version": "1"},
        "tools": [{"preset": "add_resource"}],
        "resources": [{"preset": "numbered_resources"}],
        "listChanged": {"resources": True},
        "transport": {"modern": True},
        **more,
    }


async def test_only_what_the_server_announces_is_granted() -> None:
    server = compose(parse(config(), "test"))
    async with (
        Client(server, mode="2026-07-28") as client,
        client.listen(
            tools_list_changed=True,
            resources_list_changed=True,
            resource_subscriptions=["demo://resource/static/1"],
        ) as subscription,
    ):
        assert subscription.honored == types.SubscriptionFilter(resources_list_changed=True)
        await client.call_tool("add_resource", {"uri": "demo://added"})
        assert await anext(subscription) == ResourcesListChanged()


async def test_a_stopping_server_ends_the_stream_with_a_result() -> None:
    server = compose(parse(config(), "test"))
    async with (
        Client(server, mode="2026-07-28") as client,
        client.listen(resources_list_changed=True) as subscription,
    ):
        server.world.listen.close()
        async with asyncio.timeout(5):
            assert [event async for event in subscription] == []
