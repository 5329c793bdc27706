# ruff: noqa: E501 (a line break inside markup is a space on the page)
"""The template of the HTML report. Data and words come from `html`; everything is escaped by Jinja2, there is no script.

Colours are tokens at the top, light and dark; every state has a glyph and a word beside its colour. Contrast of text on its
background is at least 4.5 to 1 in both.
"""

STYLE = """
:root {
  color-scheme: light dark;
  --bg: #ffffff; --sunk: #f4f6f8; --line: #d4dae1; --fg: #1d2228; --fg2: #505964; --link: #1f5f9e;
  --error: #ab2218; --error-bg: #fcecea; --warning: #7a4d00; --warning-bg: #fcf2d6; --info: #1b5a78; --info-bg: #e6f2f8;
  --ok: #1a6b2d; --ok-bg: #e6f4e9;
}
@media (prefers-color-scheme: dark) { :root {
  --bg: #1c1e20; --sunk: #26292c; --line: #41464b; --fg: #dee2e6; --fg2: #abb3bb; --link: #78b7ff;
  --error: #ff9d93; --error-bg: #41211e; --warning: #efc468; --warning-bg: #3a2f14; --info: #90cde8; --info-bg: #1a323e;
  --ok: #84d698; --ok-bg: #1c3423;
} }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1rem 1.25rem 4rem; max-width: 76rem; background: var(--bg); color: var(--fg);
  font: .875rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Arial, sans-serif; font-variant-numeric: tabular-nums; }
h1 { font-size: 1.25rem; margin: 0; }
h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
p { margin: .25rem 0 .5rem; max-width: 46rem; }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
code, pre, .mono { font: .8125rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code, .mono, a, p, td { overflow-wrap: anywhere; } td.era { white-space: nowrap; }
pre { margin: .25rem 0 .75rem; padding: .5rem .75rem; background: var(--sunk); border-radius: 4px; overflow-x: auto; }
.dim { color: var(--fg2); }
.head { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; align-items: baseline; justify-content: space-between; }
.tiles { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1rem 0; padding: 0; list-style: none; }
.tiles li { padding: .375rem .75rem; border: 1px solid var(--line); border-radius: 6px; }
.tiles b { font-size: 1.125rem; }
.error { color: var(--error); } .warning { color: var(--warning); } .info { color: var(--info); } .ok { color: var(--ok); }
li.error { background: var(--error-bg); border-color: currentColor; } li.warning { background: var(--warning-bg); border-color: currentColor; }
li.info { background: var(--info-bg); } li.ok { background: var(--ok-bg); }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; color: var(--fg2); }
th, td { padding: .3125rem .75rem .3125rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th.n, td.n { text-align: right; white-space: nowrap; }
details { border: 1px solid var(--line); border-left: 4px solid currentColor; border-radius: 4px; margin: .375rem 0; }
details > * { color: var(--fg); }
summary { cursor: pointer; padding: .375rem .75rem; display: grid; grid-template-columns: .75rem 5.5rem minmax(0, 1fr) auto auto; gap: 0 .75rem; align-items: baseline; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary::before { content: "▸"; color: var(--fg2); } details[open] > summary::before { content: "▾"; }
summary .id { font-weight: 600; white-space: nowrap; }
summary .title { font-weight: 600; } .plain > summary { grid-template-columns: .75rem minmax(0, 1fr); }
summary .party, summary .count { white-space: nowrap; color: var(--fg2); }
details > div { padding: .25rem .75rem .75rem; border-top: 1px solid var(--line); }
details.plain { border-left-width: 1px; border-left-color: var(--line); }
.case { margin: .5rem 0; padding: .375rem .75rem; background: var(--sunk); border-radius: 4px; }
.case dl { margin: .25rem 0 0; display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: 0 .75rem; }
.case dt { color: var(--fg2); } .case dd { margin: 0; }
.case dt, .case dd { overflow-wrap: anywhere; min-width: 0; }
footer { margin-top: 2.5rem; color: var(--fg2); }
@media (max-width: 44rem) {
  body { padding: .75rem .75rem 3rem; }
  thead, td.none { display: none; }
  tr { display: block; padding: .375rem 0; border-bottom: 1px solid var(--line); }
  td, td.n { display: flex; gap: .75rem; border: 0; padding: .0625rem 0; text-align: left; white-space: normal; }
  td::before { content: attr(data-label); flex: 0 0 6.5rem; color: var(--fg2); }
  summary { padding: .625rem .75rem; grid-template-columns: .75rem minmax(0, 1fr) auto auto; }
  summary .title { grid-column: 2 / -1; grid-row: 2; } .plain > summary .title { grid-row: 1; }
  .case dl { grid-template-columns: 1fr; } .case dd { margin-bottom: .25rem; }
}
@media print { details > div { display: block; } }
"""

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>mcp-wiretap audit: {{ verdict }}</title>
<style>{{ style }}</style>
</head>
<body>
<header class="head">
  <h1>mcp-wiretap audit</h1>
  <span class="dim">{{ when }}</span>
</header>
<ul class="tiles" aria-label="Summary">
  {% for tile in tiles %}<li class="{{ tile.kind }}"><b>{{ tile.glyph }} {{ tile.count }}</b> {{ tile.word }}</li>{% endfor %}
</ul>
<p>{{ scope }}</p>
{% for input in damaged %}
<p class="error"><b>✕ {{ input.path }} was not read to its end:</b> {{ input.error }}. {{ input.flows }} of its flows were audited.</p>
{% endfor %}
<nav aria-label="Sections">
  {% for id, name in sections %}<a href="#{{ id }}">{{ name }}</a>{% endfor %}
</nav>
<main>
{% if endpoints %}
<section id="endpoints"><h2>Endpoints</h2>
<table><thead><tr><th>era</th><th>server</th><th>endpoint</th><th>revisions</th><th class="n">flows</th><th class="n">errors</th>
<th class="n">warnings</th></tr></thead><tbody>
{% for row in endpoints %}
<tr><td class="era" data-label="era">{{ row.era }}</td><td class="{{ 'none' if not row.server }}" data-label="server">{{ row.server or "–" }}</td>
<td data-label="endpoint"><span class="mono">{{ row.url }}</span>
{% if row.broken %}<br><span class="error">✕ expected {{ row.expected }}: {{ row.broken }}</span>{% endif %}</td>
<td class="{{ 'none' if not row.revisions }}" data-label="revisions">{{ row.revisions or "–" }}</td><td class="n" data-label="flows">{{ row.flows }}</td>
<td class="n {{ 'error' if row.errors else 'none' }}" data-label="errors">{{ row.errors or "·" }}</td>
<td class="n {{ 'warning' if row.warnings else 'none' }}" data-label="warnings">{{ row.warnings or "·" }}</td></tr>
{% endfor %}
</tbody></table>
{% if more_endpoints %}<p class="dim">and {{ more_endpoints }} more</p>{% endif %}
</section>
{% endif %}
{% for section in findings %}
<section id="{{ section.id }}"><h2>{{ section.heading }}: {{ section.count }}</h2>
{% for group in section.groups %}
<details class="{{ section.severity }}" id="{{ group.anchor }}"{{ " open" if loop.first and section.severity == "error" }}>
<summary><span class="id {{ section.severity }}">{{ section.glyph }} {{ group.rule }}</span><span class="title">{{ group.title }}</span>
<span class="party">{{ group.party }}</span><span class="count">{{ group.count }} ×</span></summary>
<div>
<p>{{ group.told.demand|prose }}</p>
{% if group.told.why %}<p><b>Why:</b> {{ group.told.why|prose }}</p>{% endif %}
{% if group.told.fix %}<p><b>Fix:</b> {{ group.told.fix|prose }}</p>{% endif %}
<p>Specification: {% if group.link %}<a href="{{ group.link }}" rel="noreferrer">{{ group.spec }}</a>{% else %}{{ group.spec }}{% endif %}</p>
{% for case in group.cases %}
<div class="case">
<div><b>{{ case.message }}</b></div>
<div class="dim"><span class="mono">{{ case.flow }}</span> · {{ case.operation }}{% if case.at %} · {{ case.at }}{% endif %}
{%- if several %} · {{ case.input }}{% endif %}</div>
{% if case.evidence %}<dl>{% for e in case.evidence %}<dt class="mono">{{ e.where }}</dt>
<dd class="mono">{{ e.value }}{% if e.expected is not none %} <span class="dim">expected {{ e.expected }}</span>{% endif %}</dd>{% endfor %}</dl>{% endif %}
{% if case.same %}<div class="dim">same in {{ case.same }} more</div>{% endif %}
{% if case.related %}<div class="dim">with {% for flow in case.related %}<span class="mono">{{ flow }}</span> {% endfor %}</div>{% endif %}
</div>
{% endfor %}
{% if group.more %}<p class="dim">and {{ group.more }} more; <code>--format json</code> has each</p>{% endif %}
</div></details>
{% endfor %}
</section>
{% endfor %}
{% if not findings and not failures_count %}<p class="ok">✓ No findings.</p>{% endif %}
{% if not findings and failures_count %}<p>No rule was broken, {{ failure_words }} failed.</p>{% endif %}
{% if failures %}
<section id="failed"><h2>Failed: {{ failure_words }}</h2>
<table><thead><tr><th class="n">count</th><th>operation, and what the other side said</th><th>explained by</th>
{% if endpoints|length > 1 %}<th>endpoint</th>{% endif %}<th>first flow</th></tr></thead><tbody>
{% for row in failures %}
<tr><td class="n" data-label="count">{{ row.count }} ×</td><td data-label="operation">{{ row.line }}</td>
<td data-label="explained by">{{ row.why }}</td>
{% if endpoints|length > 1 %}<td data-label="endpoint">{{ row.url }}</td>{% endif %}
<td data-label="first flow"><span class="mono">{{ row.flow }}</span></td></tr>
{% endfor %}
</tbody></table>
{% if more_failures %}<p class="dim">and {{ more_failures }} more</p>{% endif %}
</section>
{% endif %}
{% if conversations %}
<section id="conversations"><h2>Conversations: {{ conversation_counts }}</h2>
<table><thead><tr><th>outcome</th><th>operation</th><th class="n">rounds</th><th class="n">total</th><th class="n">client</th>
<th>links</th><th>first flow</th></tr></thead><tbody>
{% for row in conversations %}
<tr><td data-label="outcome" class="{{ row.kind }}">{{ row.status }}</td><td data-label="operation">{{ row.operation }}</td>
<td class="n" data-label="rounds">{{ row.rounds }}</td><td class="n" data-label="total">{{ row.total }}</td>
<td class="n" data-label="client">{{ row.client }}</td><td data-label="links">{{ row.links }}</td>
<td data-label="first flow"><span class="mono">{{ row.flow }}</span></td></tr>
{% endfor %}
</tbody></table>
{% if more_conversations %}<p class="dim">and {{ more_conversations }} more</p>{% endif %}
</section>
{% endif %}
{% if reasons %}
<section id="unchecked"><h2>Not checked (silence is not a pass)</h2>
<table><thead><tr><th class="n">count</th><th>what</th><th>why</th><th>first flow</th></tr></thead><tbody>
{% for row in reasons %}
<tr><td class="n" data-label="count">{{ row.count }} ×</td><td data-label="what">{{ row.what }}</td><td data-label="why">{{ row.why }}</td>
<td data-label="first flow"><span class="mono">{{ row.flow }}</span></td></tr>
{% endfor %}
</tbody></table>
{% if more_reasons %}<p class="dim">and {{ more_reasons }} more</p>{% endif %}
</section>
{% endif %}
{% if silenced %}
<section id="silenced"><h2>Silenced</h2>
<table><thead><tr><th>rule</th><th>endpoint</th><th class="n">count</th><th>reason</th></tr></thead><tbody>
{% for row in silenced %}<tr><td data-label="rule">{{ row.rule }}</td><td data-label="endpoint">{{ row.endpoint }}</td>
<td class="n" data-label="count">{{ row.count }}</td><td data-label="reason">{{ row.reason }}</td></tr>{% endfor %}
</tbody></table></section>
{% endif %}
{% if faults %}
<section id="faults"><h2>Faults of mcp-wiretap itself: {{ fault_count }}</h2>
<table><thead><tr><th>where</th><th>error</th><th>flow</th></tr></thead><tbody>
{% for row in faults %}<tr><td data-label="where">{{ row.where }}</td><td data-label="error">{{ row.error }}</td>
<td data-label="flow"><span class="mono">{{ row.flow or "–" }}</span></td></tr>{% endfor %}
</tbody></table></section>
{% endif %}
{% if dropped %}
<section id="dropped"><h2>Dropped at a limit</h2>
<ul>{% for what, count in dropped %}<li>{{ count }} {{ what }}</li>{% endfor %}</ul></section>
{% endif %}
{% if flows %}
<section id="flows"><h2>MCP flows</h2>
<details class="plain"><summary><span class="title">{{ flow_words }}</span></summary><div>
<table><thead><tr><th>time</th><th>era</th><th>operation</th><th class="n">status</th><th>outcome</th><th>flow</th></tr></thead><tbody>
{% for row in flows %}<tr><td data-label="time">{{ row.at }}</td><td class="era" data-label="era">{{ row.era }}</td>
<td data-label="operation">{{ row.operation }}</td><td class="n" data-label="status">{{ row.status }}</td>
<td data-label="outcome">{{ row.outcome }} {{ row.said }}</td><td data-label="flow"><span class="mono">{{ row.flow }}</span></td></tr>
{% endfor %}
</tbody></table></div></details></section>
{% endif %}
</main>
<footer>mcp-wiretap {{ version }} · exit status {{ exit_status }} with --fail-on {{ fail_on }}</footer>
</body>
</html>
"""
