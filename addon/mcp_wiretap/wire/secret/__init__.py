"""What is a secret, and how one is masked: the one place that decides, for pages, views, copies, comments, reports, `diff`,
exports and replays alike.

- `names`: what the name of a header, a member, a parameter or a multipart field says of its value.
- `texts`: secrets inside texts, by their form and by what stands before them.
- `known`: what is known to be secret in a trace, and masked wherever else it stands there.
- `masking`: the masks. `concealed(text)` is the function for any text from the wire; inside of `knowing(exchange.secrets)` (rules
  and trackers are always called so) it goes by what the trace knows, too.
"""

from mcp_wiretap.wire.secret.known import KnownSecrets, know, knowing
from mcp_wiretap.wire.secret.masking import (
    IN_SCHEMAS,
    LABELS,
    STAND_INS,
    concealed,
    hidden,
    hidden_head,
    is_secret,
    mask_header,
    masked,
    shown,
)
from mcp_wiretap.wire.secret.names import (
    ENTERED,
    SECRET_HEADERS,
    SECRET_MEMBERS,
    is_header,
    is_member,
    is_number_member,
    is_parameter,
    looks_random,
    looks_secret,
)
from mcp_wiretap.wire.secret.spelling import mask
from mcp_wiretap.wire.secret.texts import SECRET_TEXT, secrets_in, secrets_in_bytes
from mcp_wiretap.wire.secret.visible import escaped_json, one_line, safe, visible

__all__ = [
    "ENTERED",
    "IN_SCHEMAS",
    "LABELS",
    "SECRET_HEADERS",
    "SECRET_MEMBERS",
    "SECRET_TEXT",
    "STAND_INS",
    "KnownSecrets",
    "concealed",
    "escaped_json",
    "hidden",
    "hidden_head",
    "is_header",
    "is_member",
    "is_number_member",
    "is_parameter",
    "is_secret",
    "know",
    "knowing",
    "looks_random",
    "looks_secret",
    "mask",
    "mask_header",
    "masked",
    "one_line",
    "safe",
    "secrets_in",
    "secrets_in_bytes",
    "shown",
    "visible",
]
