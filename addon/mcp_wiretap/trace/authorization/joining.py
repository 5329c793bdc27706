"""What a step is to know of the steps of its flow before it: order of discovery, the challenge it answers, scopes so far."""

from mcp_wiretap.trace.authorization import urls
from mcp_wiretap.trace.authorization.documents import ResourceMetadata, ServerMetadata
from mcp_wiretap.trace.authorization.sites import Site
from mcp_wiretap.trace.authorization.steps import Ask, AuthorizationFlow, Step, StepUp, Target
from mcp_wiretap.wire.secret import one_line


def join(step: Step, flow: AuthorizationFlow, site: Site) -> None:
    """Before the step is added to its flow."""
    if flow.revision is None:
        flow.revision = site.revision
    if step.kind == "resource-metadata" and step.resource is not None:
        _resource(step, step.resource, flow, site)
    elif step.kind == "server-metadata" and step.server is not None:
        _server(step, step.server, flow)
    elif step.kind in ("authorize", "pushed") and step.ask is not None:
        _ask(step, step.ask, flow)
    step.target = _target(step, flow, site)


def _resource(step: Step, found: ResourceMetadata, flow: AuthorizationFlow, site: Site) -> None:
    asked = [s.url for s in flow.steps if s.kind == "resource-metadata"]
    challenge = flow.challenge.challenge if flow.challenge is not None else None
    found.challenged = challenge is not None
    named = urls.split(challenge.metadata_url) if challenge is not None else None
    if named is not None:
        here = site.origin + named.path if site.reverse else named.place
        found.named, found.named_before = here, here in asked
        if site.reverse and step.url == here and named.origin != site.origin:
            site.public = named.origin  # the client followed that name to here
    found.origin_known = site.known
    path_form = site.forms[0] if len(site.forms) > 1 else None
    if step.url == found.named:
        found.form = "named"
    elif step.url == path_form:
        found.form = "path"
    elif site.forms and step.url == site.forms[-1]:
        found.form = "root"
    if path_form is not None:
        found.path_form, found.path_before = path_form, path_form in asked


def _server(step: Step, found: ServerMetadata, flow: AuthorizationFlow) -> None:
    if found.index is None:
        return
    for done in flow.steps:
        other = done.server
        if other is None or done.server_of is not step.server_of or other.index is None or other.index >= found.index:
            continue
        if other.read and other.right_issuer:
            found.needless = done.url
            return


def _ask(step: Step, ask: Ask, flow: AuthorizationFlow) -> None:
    refusal = flow.refusal
    if refusal is not None and refusal.challenge is not None and refusal.challenge.scopes is not None:
        _step_up(step, ask, refusal, flow)
    elif flow.challenge is not None and not flow.asks and not flow.tokens:
        ask.initial = flow.challenge.challenge
    flow.refusal = None
    flow.asks += 1
    flow.asked = ask.scopes
    if ask.server is not None:
        flow.server = ask.server


def _step_up(step: Step, ask: Ask, refusal: Step, flow: AuthorizationFlow) -> None:
    """The union of what was asked for before and what the challenge names, and what of it the new request lacks."""
    challenge = refusal.challenge
    assert challenge is not None
    token, challenged = challenge.token, challenge.scopes or ()
    issue = token.issue_for(flow.endpoint) if token is not None else None
    before = _kept(issue.asked, issue.granted) if issue is not None else None
    have = frozenset(ask.scopes or ())
    missing = tuple(s for s in dict.fromkeys((*(before or ()), *challenged)) if s not in have)
    ask.step_up = StepUp(refusal.flow, before or (), challenged, missing, challenge.status == 403 and before is not None)
    step.shown["scopes so far"] = one_line(" ".join(before or ()), 300)
    step.shown["scopes challenged"] = one_line(" ".join(challenged), 300)
    if missing:
        step.shown["scopes dropped"] = one_line(" ".join(missing), 300)


def _kept(asked: tuple[str, ...] | None, granted: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The scopes asked for that were not refused."""
    if asked is None or granted is None:
        return asked if granted is None else granted
    return tuple(scope for scope in asked if scope in granted)


def _target(step: Step, flow: AuthorizationFlow, site: Site) -> Target:
    """What the `resource` parameters of a request name."""
    listed = flow.metadata.resource if flow.metadata is not None else None
    named: Target = "none"
    for resource in step.resources:
        found = urls.relation(resource, site.url, origins=site.known)
        if found == "invalid":
            return "invalid"
        if found in ("other-path", "other-origin") and (listed is None or urls.canonical(resource) != urls.canonical(listed)):
            return "other" if site.known else "unknown"
        named = "right"
    return named
