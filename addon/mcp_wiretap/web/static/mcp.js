// The inspector's pages: opens rows, keeps lists live, filters without loading anew, keys. Without it the pages still show.
// All HTML comes from the server, escaped there; nothing from traffic is made into markup here.
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const page = document.body.dataset.page;
  const store = {
    get: (key) => { try { return localStorage.getItem("mcp-wiretap-" + key); } catch { return null; } },
    set: (key, value) => { try { value === null ? localStorage.removeItem("mcp-wiretap-" + key) : localStorage.setItem("mcp-wiretap-" + key, value); } catch { /* private mode */ } },
  };

  // The token is in the cookie by now; it need not stay in the address.
  const here = new URL(location.href);
  if (here.searchParams.has("token")) {
    here.searchParams.delete("token");
    history.replaceState(null, "", here);
  }

  const list = () => $("#list");
  const rowsOf = () => $$("#pins > li[data-key], #list > li[data-key], #list tr[data-key]").filter((row) => row.offsetParent !== null);
  const say = (text) => { const box = $("#said"); box.textContent = text; box.classList.add("on"); clearTimeout(say.timer); say.timer = setTimeout(() => box.classList.remove("on"), 2500); };
  const parse = (html) => { const made = document.createElement("template"); made.innerHTML = html; return made.content; };
  const api = async (path, options) => {
    const answer = await fetch("/mcp/" + path, { credentials: "same-origin", cache: "no-store", ...options });
    if (answer.status === 403) throw new Error("Not logged in any more: load the page again.");
    if (!answer.ok) throw new Error((await answer.text()).slice(0, 300) || answer.statusText);
    return answer;
  };

  // ---- theme: as mitmweb, dark, light

  const themes = [null, "dark", "light"];
  const paint = () => {
    const own = store.get("theme"), mitmweb = document.documentElement.dataset.mitmwebTheme;
    const theme = own || (mitmweb === "system" ? null : mitmweb);
    if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;
  };
  $("#theme").addEventListener("click", () => {
    const next = themes[(themes.indexOf(store.get("theme")) + 1) % themes.length];
    store.set("theme", next);
    paint();
    say("Theme: " + (next || "as mitmweb"));
  });
  paint();

  // ---- mitmweb's own list: its comment column, where our verdicts are, is 150 pixels wide until somebody pulls at it

  try {
    if (!localStorage.getItem("mitmweb-column-widths")) localStorage.setItem("mitmweb-column-widths", JSON.stringify({ path: 150, comment: 520 }));
  } catch { /* private mode */ }

  // ---- opening rows

  const opened = new Map(); // key -> when its detail was fetched
  async function fill(row, again) {
    const box = $(":scope > details > [data-open]", row);
    if (!box || (box.childElementCount && !again)) return;
    const key = row.dataset.key;
    if (!box.childElementCount) box.innerHTML = '<div class="skel"></div><div class="skel"></div>';
    opened.set(key, Date.now());
    try {
      const asked = new URLSearchParams(location.search), query = new URLSearchParams({ key });
      for (const name of ["endpoint", "q"]) if (asked.get(name)) query.set(name, asked.get(name));
      const answer = await api(`row/${page}?${query}`);
      const scrolls = $$("pre", box).map((pre) => pre.scrollTop);
      box.replaceChildren(parse(await answer.text()));
      $$("pre", box).forEach((pre, index) => { if (scrolls[index]) pre.scrollTop = scrolls[index]; });
      pins.draw(box);
    } catch (error) {
      const note = document.createElement("p");
      note.className = "note err";
      note.textContent = error.message;
      box.replaceChildren(note);
    }
  }
  document.addEventListener("toggle", (event) => {
    const row = event.target.closest?.("li[data-key]");
    if (!row || event.target.parentElement !== row) return;
    if (event.target.open) {
      fill(row);
      history.replaceState(history.state, "", "#r-" + encodeURIComponent(row.dataset.key));
    } else if (decodeURIComponent(location.hash.slice(3)) === row.dataset.key) {
      history.replaceState(history.state, "", location.pathname + location.search);
    }
  }, true);

  const rowFor = (key) => $$("#list > li[data-key], #list tr[data-key]").find((row) => row.dataset.key === key);
  async function openFragment() {
    if (!location.hash.startsWith("#r-")) return;
    let key;
    try { key = decodeURIComponent(location.hash.slice(3)); } catch { return; }
    let row = rowFor(key);
    if (!row && (page === "protocol" || page === "network" || page === "streams")) {
      try {
        const answer = await api(`rows/${page}?only=${encodeURIComponent(key)}`);
        const found = $("li[data-key]", parse(await answer.text()));
        if (found) { list()?.prepend(found); row = found; $$(".empty").forEach((box) => box.remove()); }
      } catch { /* said below */ }
    }
    if (!row) { say("That row is not there (any more)."); return; }
    const details = $(":scope > details", row);
    if (details) { details.open = true; await fill(row); }
    $("#follow")?.setAttribute("aria-pressed", "false");
    row.scrollIntoView({ block: "start" });
    current = row;
    $("summary", row)?.focus({ preventScroll: true });
  }
  window.addEventListener("hashchange", openFragment);

  // ---- pins

  const pins = {
    all: () => (store.get("pins") || "").split(",").filter(Boolean),
    toggle(key) {
      const known = new Set(this.all());
      known.has(key) ? known.delete(key) : known.add(key);
      store.set("pins", [...known].slice(-50).join(",") || null);
      this.draw(document);
      this.show();
      say(known.has(key) ? "Pinned" : "Not pinned any more");
    },
    draw(root) {
      const known = new Set(this.all());
      $$("[data-pin]", root).forEach((button) => button.setAttribute("aria-pressed", String(known.has(button.dataset.pin))));
    },
    async show() {
      const box = $("#pins");
      if (!box) return;
      const known = this.all();
      if (!known.length) { box.hidden = true; box.replaceChildren(); return; }
      try {
        const answer = await api(`rows/protocol?only=${encodeURIComponent(known.join(","))}`);
        const found = $$("li[data-key]", parse(await answer.text()));
        found.forEach((row) => { row.removeAttribute("id"); });
        box.replaceChildren(...found);
        box.hidden = !found.length;
      } catch { box.hidden = true; }
    },
  };

  // ---- filters, order, older rows: the same page with another query

  async function go(url, push = true) {
    try {
      const answer = await fetch(url, { credentials: "same-origin", cache: "no-store" });
      if (!answer.ok) { location.href = url; return; }
      const made = new DOMParser().parseFromString(await answer.text(), "text/html");
      const typed = document.activeElement?.matches?.("[data-filter]") ? document.activeElement : null;
      const [value, at] = typed ? [typed.value, typed.selectionStart] : [];
      $("#content").replaceWith(made.querySelector("#content"));
      $$(".side a").forEach((link, index) => { link.href = made.querySelectorAll(".side a")[index].href; });
      if (push) history.pushState(null, "", url); else history.replaceState(null, "", url);
      if (typed) { const field = $("[data-filter]"); if (field) { field.value = value; field.focus(); field.setSelectionRange(at, at); } }
      current = null;
      ready();
      connect();
    } catch { location.href = url; }
  }
  const withQuery = (name, value) => {
    const url = new URL(location.href);
    url.hash = "";
    if (value) url.searchParams.set(name, value); else url.searchParams.delete(name);
    return url.pathname + url.search;
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-soft]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const url = new URL(link.getAttribute("href"), location.href);
    go(url.pathname + url.search);
  });
  document.addEventListener("change", (event) => {
    const key = event.target.dataset?.choose;
    if (key) go(withQuery(key, event.target.value));
  });
  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-filter]")) return;
    clearTimeout(go.timer);
    const value = event.target.value.trim();
    go.timer = setTimeout(() => go(withQuery("q", value), false), 250);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form.find")) { event.preventDefault(); clearTimeout(go.timer); go(withQuery("q", $("[data-filter]").value.trim()), false); }
  });
  window.addEventListener("popstate", () => go(location.pathname + location.search + location.hash, false));

  async function older(button) {
    const url = new URL(location.href);
    url.searchParams.set("before", button.dataset.before);
    button.disabled = true;
    try {
      const answer = await api(`rows/${page}${url.search}`);
      const found = parse(await answer.text());
      const height = document.documentElement.scrollHeight;
      if (list().dataset.order === "newest") list().append(found);
      else { list().prepend(found); window.scrollBy(0, document.documentElement.scrollHeight - height); }
      button.dataset.before = answer.headers.get("X-Older") || "";
      button.hidden = !button.dataset.before;
    } catch (error) { say(error.message); }
    button.disabled = false;
  }

  // ---- live

  let socket = null, tries = 0, lostAt = 0, paused = false, held = [], unseen = 0, looking = null;
  const following = () => $("#follow")?.getAttribute("aria-pressed") === "true";
  const atEnd = () => window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 60;
  const busy = (element) => {
    const selection = getSelection();
    return selection && !selection.isCollapsed && element.contains(selection.anchorNode);
  };

  function connect() {
    clearTimeout(connect.timer);
    if (socket) { socket.onclose = null; socket.close(); }
    const query = new URLSearchParams(location.search);
    query.delete("token");
    query.set("page", page);
    socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/mcp/updates?${query}`);
    socket.onopen = () => {
      if (lostAt) { lostAt = 0; reload(); }
      tries = 0;
      $("#stale").hidden = true;
      word();
    };
    socket.onmessage = (event) => take(JSON.parse(event.data));
    socket.onclose = () => {
      lostAt = lostAt || Date.now();
      const wait = Math.min(1000 * 2 ** tries++, 15000);
      $("#stale").hidden = false;
      const again = Date.now() + wait;
      clearInterval(connect.clock);
      connect.clock = setInterval(() => {
        if (!lostAt) { clearInterval(connect.clock); return; }
        $("#stale-word").textContent = `Connection lost ${Math.round((Date.now() - lostAt) / 1000)} s ago.`;
        $("#stale-since").textContent = `What you see is from ${new Date(lostAt).toLocaleTimeString([], { hourCycle: "h23" })}; trying again in ${Math.max(0, Math.round((again - Date.now()) / 1000))} s.`;
      }, 500);
      connect.timer = setTimeout(connect, wait);
      word();
    };
  }
  const word = () => {
    const recorded = $("#live").dataset.live === "false";
    $("#live-word").textContent = lostAt ? "Lost" : paused ? `Paused${held.length ? ", changes wait" : ""}` : recorded ? "Recording" : "Live";
    $("#live").classList.toggle("off", Boolean(lostAt || paused));
    $("#live").classList.toggle("rec", recorded);
  };
  $("#retry").addEventListener("click", connect);

  function take(message) {
    if (message.type === "summary") { count(message.summary); return; }
    if (message.type === "choices") { choices(message.choices); return; }
    if (paused) { held.push(message); if (held.length > 400) { held = [{ type: "reload" }]; } word(); return; }
    if (message.type === "rows") rows(message);
    else if (message.type === "look") look();
    else if (message.type === "reload") reload();
  }

  // What there is to choose from, as it becomes known. An open list is not made anew under the hand.
  function choices(found) {
    for (const [key, options] of Object.entries(found)) {
      for (const select of $$(`select[data-choose="${key}"]`)) {
        let before = select.options[0];
        for (const [value, words] of options) {
          let option = [...select.options].find((each) => each.value === value);
          if (!option) { option = new Option(words, value); before.after(option); }
          if (option.textContent !== words) option.textContent = words;
          before = option;
        }
        if (key === "endpoint") select.options[0].textContent = `All ${options.length} endpoint${options.length === 1 ? "" : "s"}`;
        select.closest("label").hidden = options.length < 2 && !select.value;
      }
    }
  }

  function count(summary) {
    $("#live").dataset.live = String(summary.live);
    word();
    const value = (path) => path.split(".").reduce((inner, step) => inner?.[step], summary);
    ask();
    $$("[data-count]").forEach((place) => {
      const number = value(place.dataset.count);
      place.textContent = "blank" in place.dataset && !number ? "" : number;
    });
    $$("[data-s]").forEach((place) => { place.textContent = value(place.dataset.s) === 1 ? "" : "s"; });
    const badge = (place, errors, warnings) => {
      if (!place) return;
      const made = document.createElement("span");
      made.className = "fx";
      for (const [kind, glyph, number, name] of [["e", "x", errors, "errors"], ["w", "warn", warnings, "warnings"]]) {
        if (!number) continue;
        const part = document.createElement("span");
        part.className = kind;
        part.title = `${number} ${number === 1 ? name.slice(0, -1) : name}`;
        part.append(icon(glyph), String(number));
        made.append(part);
      }
      place.replaceChildren(made);
    };
    badge($("#top-findings"), summary.error, summary.warning);
    const nav = $("#nav-errors");
    if (nav) nav.replaceChildren(...(summary.error ? [icon("x"), String(summary.error)] : []));
  }
  function icon(name) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    made.setAttribute("class", "i");
    made.setAttribute("aria-hidden", "true");
    const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
    use.setAttribute("href", "#i-" + name);
    made.append(use);
    return made;
  }

  // A row updates in place: its summary only. An open row is filled anew, unless somebody reads or selects in it.
  function update(there, made) {
    const told = $("[data-result]:not(:empty)", there);
    if (there.className !== made.className) there.className = made.className;
    const before = $(":scope > details > summary", there), after = $(":scope > details > summary", made);
    if (before && after) {
      const bar = $(".wf[data-kept]", after), old = $(".wf", before);
      if (bar && old) bar.replaceWith(old.cloneNode(true));
      if (before.innerHTML !== after.innerHTML && !busy(before)) before.innerHTML = after.innerHTML;
      const details = $(":scope > details", there);
      if (told) return; // what to put into wiretap.toml stays until it is closed
      if (details.open && !busy(details) && Date.now() - (opened.get(there.dataset.key) || 0) > 900) fill(there, true);
      else if (details.open) { clearTimeout(there.refill); there.refill = setTimeout(() => { if (details.open && !busy(details)) fill(there, true); }, 1000); }
      else $(":scope > [data-open]", details)?.replaceChildren();
    } else if (!busy(there) && there.innerHTML !== made.innerHTML) {
      const open = $$("[data-inline][aria-expanded=true]", there).map((button) => button.dataset.inline);
      there.innerHTML = made.innerHTML;
      open.forEach((key) => { const button = $$("[data-inline]", there).find((b) => b.dataset.inline === key); if (button) inline(button); });
    }
  }

  function rows(message) {
    const ol = list();
    if (!ol) return;
    const newest = ol.dataset.order === "newest", end = atEnd();
    message.gone.forEach((key) => { const row = rowFor(key); if (row && !$("details", row)?.open) row.remove(); });
    let fresh = 0;
    for (const entry of message.rows) {
      const made = $("li", parse(entry.html));
      if (!made) continue;
      const there = rowFor(entry.key);
      if (there) { update(there, made); continue; }
      // What a server announced stands among operations only, and does not change.
      if (!made.dataset.key && (document.getElementById(made.id) || !$(":scope > li[data-key]", ol))) continue;
      made.classList.add("fresh");
      place(ol, made, Number(entry.at), newest);
      if (!message.bursts) gap(made);
      fresh++;
    }
    if (message.bursts) heads(ol, message.bursts, newest);
    if (!fresh) return;
    $$("#content > .empty").forEach((box) => box.remove());
    trim(ol, newest);
    if (newest) return;
    if (following() && end) window.scrollTo(0, document.documentElement.scrollHeight);
    else if (!end) { unseen += fresh; more(); }
  }
  // Network: what stands above a burst, and the line for the time before it in which nothing happened.
  function heads(ol, bursts, newest) {
    const drop = (row, kind, way) => { while (row?.classList.contains(kind)) { const next = row[way]; row.remove(); row = next; } return row; };
    for (const burst of bursts) {
      const first = rowFor(burst.first), last = rowFor(burst.last);
      if (!first || !last || first.compareDocumentPosition(last) & Node.DOCUMENT_POSITION_PRECEDING) continue;
      for (let row = first; row !== last; ) { const next = row.nextElementSibling; if (!row.dataset.key) row.remove(); row = next; }
      const above = drop(first.previousElementSibling, "scale-row", "previousElementSibling");
      if (burst.gap !== null) newest ? drop(last.nextElementSibling, "gap", "nextElementSibling") : drop(above, "gap", "previousElementSibling");
      first.before(parse(burst.head));
      if (burst.gap) newest ? last.after(parse(burst.gap)) : first.previousElementSibling.before(parse(burst.gap));
    }
    $$(":scope > .scale-row", ol).forEach((row) => { if (!row.nextElementSibling?.dataset.key) row.remove(); });
  }
  // The other lists: a line where nothing happened for a while.
  function gap(made) {
    for (const other of [made.previousElementSibling, made.nextElementSibling]) {
      const pause = other?.dataset.at ? Math.abs(Number(made.dataset.at) - Number(other.dataset.at)) : 0;
      if (pause <= 5) continue;
      const line = document.createElement("li");
      line.className = "gap";
      line.ariaHidden = "true";
      line.textContent = `idle ${span(pause)}`;
      other === made.previousElementSibling ? made.before(line) : made.after(line);
    }
  }
  const span = (seconds) => {
    if (seconds < 60) return `${seconds.toFixed(1)} s`;
    const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
    return hours ? `${hours} h ${minutes % 60} min` : `${minutes} min ${Math.floor(seconds % 60)} s`;
  };
  function place(ol, made, at, newest) {
    const all = ol.children;
    if (newest) {
      for (let row of all) {
        if (!row.dataset.at || Number(row.dataset.at) >= at) continue;
        while (row.previousElementSibling && !row.previousElementSibling.dataset.at) row = row.previousElementSibling; // above its head
        row.before(made);
        return;
      }
      ol.append(made);
      return;
    }
    for (let index = all.length - 1; index >= 0; index--) {
      const row = all[index];
      if (row.dataset.at && Number(row.dataset.at) <= at) { row.after(made); return; }
    }
    ol.prepend(made);
  }
  // A page that is left open does not grow without end.
  function trim(ol, newest) {
    const most = 1000;
    while (ol.children.length > most) {
      const row = newest ? ol.lastElementChild : ol.firstElementChild;
      if ($("details[open]", row) || (!newest && !atEnd())) break;
      row.remove();
    }
  }
  function more() {
    let button = $("#unseen");
    if (!button) {
      button = document.createElement("button");
      button.id = "unseen";
      button.type = "button";
      button.className = "btn";
      button.addEventListener("click", () => window.scrollTo({ top: document.documentElement.scrollHeight }));
      document.body.append(button);
    }
    button.textContent = `${unseen} new ↓`;
    button.hidden = !unseen;
  }
  window.addEventListener("scroll", () => { if (unseen && atEnd()) { unseen = 0; more(); } }, { passive: true });

  // Pages whose rows hang together: look at all of them again, keep what is open.
  async function look() {
    if (looking) { looking.again = true; return; }
    looking = {};
    try {
      const answer = await fetch(location.pathname + location.search, { credentials: "same-origin", cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      const made = new DOMParser().parseFromString(await answer.text(), "text/html");
      const ol = list(), found = [...made.querySelector("#list").children];
      if (!ol || (ol.hidden && found.length)) { reload(); }
      else { merge(ol, found); around(made); }
    } catch { /* the connection says so itself */ }
    const again = looking.again;
    looking = null;
    if (again) look();
  }
  // The words and numbers around the list.
  function around(made) {
    for (const selector of [".head > p", ".head .seg", ".bar .seg", ".bar > .btn", ".silenced", ".tiles"]) {
      const now = $$(`#content ${selector}`), then = [...made.querySelectorAll(`#content ${selector}`)];
      now.forEach((place, index) => { const other = then[index]; if (other && !place.contains(document.activeElement) && place.innerHTML !== other.innerHTML) place.replaceChildren(...other.childNodes); if (other) place.hidden = other.hidden; });
    }
    unfilled(made);
  }
  // What stands in place of rows, as long as there are none.
  function unfilled(made) {
    const now = $("#content > .empty"), then = made.querySelector("#content > .empty");
    if (now && then && now.innerHTML !== then.innerHTML) now.replaceWith(then);
  }
  // A list is told of its own rows only: that there is other traffic by now is seen by the counts.
  let asking = false;
  async function ask() {
    const waits = () => $("#content > .empty[data-nothing]") && !("look" in list().dataset);
    if (asking || !waits()) return;
    asking = true;
    await new Promise((done) => setTimeout(done, 500));
    asking = false;
    const url = location.href;
    try {
      const answer = await fetch(location.pathname + location.search, { credentials: "same-origin", cache: "no-store" });
      if (answer.ok && url === location.href && waits()) unfilled(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch { /* the connection says so itself */ }
  }
  function merge(ol, found) {
    const known = new Map([...ol.children].map((row) => [row.id, row]));
    const end = atEnd();
    let before = null;
    for (const made of found) {
      const there = made.id ? known.get(made.id) : null;
      if (there) { update(there, made); known.delete(made.id); before = there; continue; }
      if (before) before.after(made); else ol.prepend(made);
      before = made;
    }
    for (const row of known.values()) if ($("details[open]", row)) row.classList.add("gone"); else row.remove();
    if (found.length) $$("#content > .empty").forEach((box) => box.remove());
    if (following() && end) window.scrollTo(0, document.documentElement.scrollHeight);
  }
  function reload() {
    const hash = location.hash;
    clearTimeout(reload.timer);
    reload.timer = setTimeout(async () => { await go(location.pathname + location.search, false); if (hash) { history.replaceState(null, "", hash); openFragment(); } }, 100);
  }

  // The age of what is open.
  setInterval(() => {
    if (paused || lostAt) return;
    $$("[data-age]").forEach((place) => {
      place.textContent = span(Math.max(0, Date.now() / 1000 - Number(place.dataset.age)));
    });
  }, 500);

  // ---- buttons

  function pause() {
    const button = $("#pause");
    paused = !paused;
    button?.setAttribute("aria-pressed", String(paused));
    if (button) $("span", button).textContent = paused ? "Resume" : "Pause";
    if (!paused) { const all = held; held = []; all.forEach(take); }
    word();
  }
  function follow() {
    const button = $("#follow");
    if (!button) return;
    const on = !following();
    button.setAttribute("aria-pressed", String(on));
    if (on) window.scrollTo(0, document.documentElement.scrollHeight);
  }
  async function copy(what, key) {
    try {
      const text = await (await api(`copy/${what}?key=${encodeURIComponent(key)}`)).text();
      await put(text);
      say({ json: "Copied as JSON", curl: "Copied as curl; secrets are masked", case: "Copied as a test case" }[what]);
    } catch (error) { say(error.message); }
  }
  async function put(text) {
    if (navigator.clipboard) { try { await navigator.clipboard.writeText(text); return; } catch { /* not allowed: the old way */ } }
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "vh";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  async function inline(button) {
    const row = button.closest("tr"), next = row.nextElementSibling;
    if (next?.classList.contains("inline")) { next.remove(); button.setAttribute("aria-expanded", "false"); return; }
    button.setAttribute("aria-expanded", "true");
    const line = document.createElement("tr"), cell = document.createElement("td");
    line.className = "inline";
    cell.colSpan = 7;
    line.append(cell);
    row.after(line);
    try { cell.replaceChildren(parse(await (await api(`row/${page}?key=${encodeURIComponent(button.dataset.inline)}`)).text())); }
    catch (error) { cell.textContent = error.message; }
  }
  async function silence(form) {
    const result = $("[data-result]", form);
    const token = document.cookie.match(/(?:^|; )_mitmproxy_xsrf=([^;]*)/)?.[1] || "";
    try {
      const answer = await api("silence", {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-XSRFToken": decodeURIComponent(token) },
        body: JSON.stringify({ rule: form.elements.rule.value, endpoint: form.elements.endpoint.value, reason: form.elements.reason.value }),
      });
      const said = await answer.json();
      const pre = document.createElement("pre"), head = document.createElement("p"), button = document.createElement("button");
      head.textContent = `${said.count} finding${said.count === 1 ? " is" : "s are"} silenced in this session. To keep it, put this into wiretap.toml:`;
      pre.className = "text";
      pre.textContent = said.toml;
      button.type = "button";
      button.className = "btn";
      button.textContent = "Copy these lines";
      button.addEventListener("click", async () => { await put(said.toml); say("Copied"); });
      result.replaceChildren(head, pre, button);
    } catch (error) { result.textContent = error.message; }
  }
  document.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest(selector);
    let button;
    if ((button = at("[data-copy]"))) copy(button.dataset.copy, button.dataset.key);
    else if ((button = at("[data-pin]"))) pins.toggle(button.dataset.pin);
    else if ((button = at("[data-inline]"))) inline(button);
    else if (at("#pause")) pause();
    else if (at("#follow")) follow();
    else if ((button = at("#older"))) older(button);
    else if (at("#help")) sheet();
    else if ((button = at("[data-silence]"))) {
      const form = $("form.silence", button.closest(".why"));
      form.hidden = !form.hidden;
      button.setAttribute("aria-expanded", String(!form.hidden));
      if (!form.hidden) form.elements.reason.focus();
    }
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form.silence")) { event.preventDefault(); silence(event.target); }
  });

  // ---- keys

  let current = null, leader = 0;
  const pages = { o: "", p: "protocol", n: "network", f: "findings", t: "tools", s: "streams", k: "tasks", l: "logs", a: "auth", x: "apps" };
  function sheet() {
    const box = $("#keys");
    box.hidden = !box.hidden;
    $("#help").setAttribute("aria-expanded", String(!box.hidden));
    if (!box.hidden) box.scrollIntoView({ block: "nearest" });
  }
  function focusable(row) { return $("summary, [data-inline]", row); }
  function move(by, fits = () => true) {
    const all = rowsOf().filter(fits);
    if (!all.length) return;
    const focused = document.activeElement?.closest?.("[data-key]");
    const from = focused || current;
    let index = all.indexOf(from);
    if (index < 0 && from) {
      const following = all.findIndex((row) => from.compareDocumentPosition(row) & Node.DOCUMENT_POSITION_FOLLOWING);
      index = by > 0 ? (following < 0 ? all.length : following) - 1 : following < 0 ? all.length : following;
    }
    current = all[Math.min(Math.max(index + by, 0), all.length - 1)];
    focusable(current)?.focus({ preventScroll: true });
    current.scrollIntoView({ block: "nearest" });
  }
  const chosen = () => document.activeElement?.closest?.("li[data-key]") || (current?.isConnected ? current : null);
  const flowOf = (row) => row && ($("[data-open] .acts a[href^='/#/flows/'], [data-open] a.flow", row)?.getAttribute("href") || (/^[0-9a-f-]{36}$/.test(row.dataset.key) ? `/#/flows/${row.dataset.key}/request` : null));

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.matches?.("input, select, textarea");
    if (event.key === "Escape") {
      if (field && event.target.matches("[data-filter]")) {
        if (event.target.value) { event.target.value = ""; go(withQuery("q", ""), false); } else event.target.blur();
      } else if (!$("#keys").hidden) sheet();
      else {
        const row = chosen(), details = row && $(":scope > details[open]", row);
        if (details) { details.open = false; $("summary", row).focus(); }
        else if (new URL(location.href).searchParams.size) go(location.pathname);
      }
      return;
    }
    if (field) return;
    if (Date.now() - leader < 1500 && event.key in pages) { leader = 0; location.href = "/mcp/" + pages[event.key]; event.preventDefault(); return; }
    leader = 0;
    const row = chosen(), key = row?.dataset.key;
    const bad = (each) => each.classList.contains("e") || each.classList.contains("w") || each.classList.contains("bad");
    const does = {
      j: () => move(1), k: () => move(-1), ArrowDown: row ? () => move(1) : null, ArrowUp: row ? () => move(-1) : null,
      n: () => move(1, bad), p: () => move(-1, bad),
      "/": () => { const box = $("[data-filter]"); box?.focus(); box?.select(); },
      "?": sheet, f: follow, g: () => { leader = Date.now(); },
      " ": event.target === document.body || event.target.matches?.("summary") ? pause : null,
      o: () => { const href = flowOf(row); if (href) location.href = href; },
      e: () => { const all = $$("#list > li > details"), open = !all.some((each) => each.open); all.slice(0, 40).forEach((each) => { each.open = open; }); if (!open) all.forEach((each) => { each.open = false; }); },
      y: () => key && copy("json", key), c: () => key && copy("curl", key), t: () => key && copy("case", key), b: () => key && pins.toggle(key),
    }[event.key];
    if (does) { event.preventDefault(); does(); }
  });

  // ---- start

  const measure = new ResizeObserver(([entry]) => document.documentElement.style.setProperty("--under", `${entry.target.offsetHeight}px`));
  function ready() {
    measure.disconnect();
    if ($(".bar")) measure.observe($(".bar"));
    const side = $(".side"), tab = $("[aria-current]", side);
    side.scrollLeft = tab.offsetLeft - (side.clientWidth - tab.offsetWidth) / 2;
    pins.draw(document);
    pins.show();
    unseen = 0;
    if ($("#unseen")) more();
    if (paused) { $("#pause")?.setAttribute("aria-pressed", "true"); }
    if (following() && list()?.childElementCount && !location.hash) window.scrollTo(0, document.documentElement.scrollHeight);
  }
  ready();
  connect();
  openFragment();
})();
