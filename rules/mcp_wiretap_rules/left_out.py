"""Ids of the catalogue that are no rules, each with the reason. `mcp-wiretap rules` prints the table, `explain` a line of it.

Most say how to judge: they have become trackers and the central scoping, and nothing breaks them. Of the rest the wire shows too
little, or another rule speaks of the same bytes: one fault, one finding.
"""

_JUDGING = "says how to judge, and breaks nothing: "

LEFT_OUT: dict[str, str] = {
    "ERA001": _JUDGING + "the era that a request claims is worked out from its body first, and shown with each exchange",
    "ERA002": _JUDGING + "what an answer shows of its server's era is kept for the endpoint, apart from what requests claim",
    "ERA005": _JUDGING + "which errors tell a client that a server is modern is what ERA006 goes by",
    "ERA010": _JUDGING + "a request without version belongs to its session, or to 2025-03-26; HDR001 needs a modern claim",
    "ERA011": "ERA015 speaks of initialize sent as a modern request, HTS006 of a server that serves it",
    "ERA012": _JUDGING + "HTTP+SSE is told by the first event of the stream; LEG024 notes that it is deprecated",
    "ERA013": _JUDGING + "an endpoint that serves both eras is shown as dual, and each exchange is judged by its own",
    "ERA016": "MET001 speaks of the missing envelope; server/discover and subscriptions/listen without one count as modern",
    "ERA019": _JUDGING + "a 401 or 403 leaves the era open, and the request that comes after it continues the negotiation",
    "ERA023": _JUDGING + "client rules follow the claim of the request, server rules what is known of the server",
    "HDR011": "header names have no case: there is nothing to find, and HTS012 speaks of servers that refuse one spelling",
    "HDR012": "spaces around a value are no part of it: there is nothing to find, and HTS012 speaks of servers that mind them",
    "HDR023": "HDR002 and HDR004 speak of it, and name the parts of two values that were merged in one line",
    "PAR009": _JUDGING + "what looks like an annotation inside a default or an example is none",
    "PAR026": _JUDGING + "values are read at the exact path of the annotation, which is how PAR011 to PAR016 compare them",
    "RPC028": "HTS012, HTS013 and HTS014 speak of errors that have a meaning which does not hold",
    "RPC031": _JUDGING + "rules of Streamable HTTP are not applied to HTTP+SSE, whatever revision was negotiated there",
    "MET018": "the envelope is for requests: a notification with or without one is right",
    "MRT001": _JUDGING + "which retry continues which answer is shown as the rounds of a conversation, with the evidence",
    "MRT022": "a retry is a request like any other: the rules on headers apply to it as they stand",
    "MRT023": "a retry at once is right where nothing was asked; MRT007 speaks of answers to what was not asked",
    "SSE013": "comments keep a stream alive, and are counted in the view of the exchange",
    "SSE016": "progress and log messages are the server's choice: an answer without them is right",
    "SUB013": "listening anew is the client's choice, and a recording ends where it ends; the page of streams shows which dropped",
    "SUB014": "lists may differ for reasons that do not show; RES010 and CAC013 speak of those that do",
    "HTS022": _JUDGING + "where a request has several faults, an error that fits one of them is a right answer",
    "TOO012": "TOO007 says that a tool is unknown, TOO014 that arguments do not fit: the code -32602 alone says neither",
    "LEG007": "that no DELETE was seen proves nothing: the client may have ended, or the recording",
    "LEG022": _JUDGING + "the log level is kept for each session, which is how LOG002 compares it",
    "EXT005": "the view of an endpoint shows the extensions of both sides beside each other; EXT002 speaks of misuse",
}
