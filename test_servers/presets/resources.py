"""Resources and resource templates."""

import base64

import mcp_types as types

from test_servers.registry import ResourceItem, TemplateItem, preset

PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c020000000b4944415478da6364f80f00010501012718e366"
        "0000000049454e44ae426082"
    )
).decode()
"""The smallest PNG: one pixel."""


def text_resource(uri: str, name: str, text: str, *, mime_type: str = "text/plain") -> ResourceItem:
    definition = types.Resource(uri=uri, name=name, mime_type=mime_type, size=len(text.encode()))
    contents = [types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)]
    return ResourceItem(definition, lambda: contents)


@preset("resource", "architecture")
def architecture() -> ResourceItem:
    """A page that says how a test server is built."""
    text = "# Architecture\n\nA config names presets; the SDK serves them; middleware adds what the SDK does not do.\n"
    return text_resource("demo://resource/static/document/architecture.md", "architecture", text, mime_type="text/markdown")


@preset("resource", "numbered_resources")
def numbered_resources(count: int = 3) -> list[ResourceItem]:
    """`count` resources named resource_1, resource_2, ..."""
    return [text_resource(f"demo://resource/static/{n}", f"resource_{n}", f"Text of resource {n}") for n in range(1, count + 1)]


@preset("resource", "pixel")
def pixel() -> ResourceItem:
    """A binary resource: one pixel."""
    uri = "demo://resource/static/pixel.png"
    definition = types.Resource(uri=uri, name="pixel", mime_type="image/png")
    contents = [types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)]
    return ResourceItem(definition, lambda: contents)


def _template(uri_template: str, name: str, description: str, completions: dict[str, list[str]]) -> TemplateItem:
    def read(uri: str, values: dict[str, object]) -> list[types.TextResourceContents]:
        given = ", ".join(f"{key}={value}" for key, value in sorted(values.items()))
        return [types.TextResourceContents(uri=uri, mime_type="text/plain", text=f"{name}: {given}")]

    definition = types.ResourceTemplate(uri_template=uri_template, name=name, description=description, mime_type="text/plain")
    return TemplateItem(definition, read, completions)


@preset("resourceTemplate", "user")
def user() -> TemplateItem:
    """Simple expansion: demo://users/{userId}."""
    return _template("demo://users/{userId}", "user", "One user", {"userId": ["ada", "alan", "grace"]})


@preset("resourceTemplate", "path")
def path() -> TemplateItem:
    """Reserved expansion: demo://files/{+path}."""
    return _template("demo://files/{+path}", "path", "A file by its path", {})


@preset("resourceTemplate", "search")
def search() -> TemplateItem:
    """Form-style query: demo://search{?q,limit}."""
    return _template("demo://search{?q,limit}", "search", "A search", {})


@preset("resourceTemplate", "segments")
def segments() -> TemplateItem:
    """Exploded path segments: demo://tree{/parts*}."""
    return _template("demo://tree{/parts*}", "segments", "A node of a tree", {})


@preset("resourceTemplate", "numbered_templates")
def numbered_templates(count: int = 12) -> list[TemplateItem]:
    """`count` templates named template_1, template_2, ..."""
    return [_template(f"demo://numbered/{n}/{{id}}", f"template_{n}", f"Template number {n}", {}) for n in range(1, count + 1)]
