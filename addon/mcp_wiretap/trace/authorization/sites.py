"""MCP endpoints as authorization sees them, and which of a client's flows a step belongs to.

HTTP does not name clients. A step is its flow's by what only that client can know (code, refresh token, token, client id), else
by its connection, else it goes to the newest flow that still lacks it; where several could be meant, the flow is not `sure`.
"""

from dataclasses import dataclass, field

from mcp_wiretap.trace.authorization import urls
from mcp_wiretap.trace.authorization.steps import AuthorizationFlow, Step
from mcp_wiretap.trace.model import Endpoint

FLOWS = 50  # of one endpoint
PENDING = 20  # challenges of one endpoint that no flow has taken up
STALE = 3_600.0  # seconds after which a flow that came to nothing is not gone on with: a person may take long to log in
CONCURRENT = 30.0  # seconds: two challenges so near each other may be followed up in either order


@dataclass(slots=True, eq=False)
class Site:
    """An MCP endpoint, the challenges it gave, and the flows for it (`endpoint.facts[AUTHORIZATION_FLOWS]`)."""

    endpoint: Endpoint
    origin: str
    forms: list[str]  # of its resource metadata, in order
    reverse: bool  # recorded by a reverse proxy
    public: str | None  # origin by which clients call it; None where that is not known
    flows: list[AuthorizationFlow] = field(default_factory=list)
    pending: list[Step] = field(default_factory=list)  # challenges of requests without a known token
    revision: str | None = None  # that was declared last
    challenged: bool = False
    agents: set[str] = field(default_factory=set)  # User-Agents of its clients

    def knows(self, step: Step) -> bool:
        """Whether a client of this endpoint is the same program."""
        return not step.agent or step.agent in self.agents or "" in self.agents

    def awaits(self, step: Step) -> bool:
        """Whether a flow is on its way to a token of the server that a step goes to."""
        for flow in self.flows:
            if flow.under_way and flow.server is step.server_of and step.at - flow.last < STALE:
                if step.kind == "registration" and (flow.asks or flow.client_id is not None):
                    continue
                if step.by_browser or same_agent(flow.agent, step.agent):
                    return True
        return False

    @property
    def busy(self) -> float:
        """When something was last done on the way to a token."""
        return max((f.last for f in self.flows if f.under_way), default=0.0)

    @property
    def url(self) -> str:
        """As clients call it, where that is known."""
        url = self.endpoint.url
        return urls.moved(url, self.origin, self.public) if self.public is not None else url

    @property
    def known(self) -> bool:
        return not self.reverse or self.public is not None

    def flow_for(self, step: Step, linked: AuthorizationFlow | None, number: int) -> AuthorizationFlow:
        """The flow of a step; a new one where it is nobody's."""
        if linked is not None and linked.endpoint is self.endpoint:
            return linked
        challenge = self._challenge_for(step)
        waiting = [f for f in self.flows if f.under_way and step.at - f.last < STALE and _fits(f, step)]
        near = [f for f in waiting if f.connection == step.connection]
        if challenge is not None and not near:
            newest = waiting[-1] if waiting else None
            if newest is None or challenge.at > newest.last or challenge.connection == step.connection:
                others = [c for c in self.pending if c is not challenge and step.at - c.at < CONCURRENT]
                return self._begin(step, challenge, number, alone=newest is None and not others)
        if near or waiting:
            found = (near or waiting)[-1]
            if not near and len(waiting) > 1:
                found.sure = False
            return found
        return self._begin(step, None, number, alone=True)

    def _challenge_for(self, step: Step) -> Step | None:
        """The challenge that a step may follow: of the same connection, else the newest of the same program."""
        if step.kind in ("login", "callback", "use"):
            return None
        fits = [c for c in self.pending if c.at <= step.at < c.at + STALE]
        near = [c for c in fits if c.connection == step.connection]
        if not near and not step.by_browser:
            fits = [c for c in fits if same_agent(c.agent, step.agent)]
        found = near or fits
        return found[-1] if found else None

    def _begin(self, step: Step, challenge: Step | None, number: int, *, alone: bool) -> AuthorizationFlow:
        flow = AuthorizationFlow(self.endpoint, step.at, number, step.connection, step.agent, sure=alone)
        if challenge is not None:
            flow.started, flow.connection, flow.agent = challenge.at, challenge.connection, challenge.agent
            self.pending.remove(challenge)
            alike = step.by_browser or challenge.agent == step.agent  # not only where one of them has no name
            flow.sure = (alone and alike) or challenge.connection == step.connection
            flow.add(challenge)
            flow.challenge = challenge
            if challenge.challenge is not None:
                flow.revision = challenge.challenge.revision
        self.flows.append(flow)
        if len(self.flows) > FLOWS:
            del self.flows[0]
        return flow

    def keep(self, challenge: Step) -> Step | None:
        """Remember a challenge until a flow takes it up. Returns one that is forgotten for it.

        A challenge whose URL is only later known to be an MCP server's belongs to the flow that had followed it."""
        for flow in self.flows:
            if flow.challenge is None and challenge.at <= flow.started and same_agent(flow.agent, challenge.agent):
                flow.steps.insert(0, challenge)
                flow.started, flow.challenge, challenge.part_of = challenge.at, challenge, flow
                return None
        self.pending.append(challenge)
        return self.pending.pop(0) if len(self.pending) > PENDING else None


def _fits(flow: AuthorizationFlow, step: Step) -> bool:
    if not step.by_browser and not same_agent(flow.agent, step.agent):
        return False
    server = step.server_of
    if server is not None and flow.server is not None and flow.server is not server and step.kind != "server-metadata":
        return False
    if step.kind == "registration":
        return flow.client_id is None and flow.asks == 0
    if step.kind in ("resource-metadata", "server-metadata") and flow.connection != step.connection:
        return not any(s.kind == step.kind and s.url == step.url and s.ok for s in flow.steps)
    return True


def same_agent(one: str, two: str) -> bool:
    """Whether two User-Agents may be one program's."""
    return one == two or not one or not two
