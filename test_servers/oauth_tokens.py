"""Access tokens: JWTs as in RFC 9068, and what a resource server has to find in one. Knows no HTTP."""

import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from mcp.server.auth.provider import AccessToken

ALGORITHM = "ES256"


@dataclass
class Signer:
    """The key of an authorization server, made when it starts."""

    issuer: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    key_id: str = field(default_factory=lambda: secrets.token_hex(4))

    def jwks(self) -> dict[str, Any]:
        """The public half, as a JWK set."""
        public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": self.key_id, "use": "sig", "alg": ALGORITHM}]}

    def issue(self, client_id: str, subject: str, scopes: list[str], resource: str, seconds: int) -> str:
        """A token for `resource` and nothing else."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": resource,
            "sub": subject,
            "client_id": client_id,
            "scope": " ".join(scopes),
            "iat": now,
            "exp": now + seconds,
            "jti": secrets.token_hex(8),
        }
        return jwt.encode(claims, self.key, ALGORITHM, headers={"typ": "at+jwt", "kid": self.key_id})


def read_token(token: str, keys: dict[str, Any], issuer: str, resource: str) -> AccessToken | None:
    """The token, if it was signed with one of `keys`, has not expired, and is from `issuer` for `resource`."""
    try:
        header = jwt.get_unverified_header(token)
        found = next((jwk for jwk in keys.get("keys", []) if jwk.get("kid") == header.get("kid")), None)
        if found is None or header.get("typ") != "at+jwt":
            return None
        required = ["exp", "iss", "aud", "sub", "client_id"]
        claims = jwt.decode(token, jwt.PyJWK(found), [ALGORITHM], audience=resource, issuer=issuer, options={"require": required})
    except (jwt.PyJWTError, ValueError):
        return None
    return AccessToken(
        token=token,
        client_id=claims["client_id"],
        scopes=claims.get("scope", "").split(),
        expires_at=claims["exp"],
        resource=resource,
        subject=claims["sub"],
        claims={"iss": issuer},
    )
