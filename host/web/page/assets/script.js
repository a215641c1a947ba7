// What a browser can't do by links and forms alone: follow the page's stream, keys, the theme, the
// slider, times that say how long ago. Everything else is in the HTML.
const root = document.documentElement;
root.classList.add("js");
const policy = window.trustedTypes ? trustedTypes.createPolicy("obelus", { createHTML: (text) => text }) : { createHTML: (text) => text };
const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// addressOf returns where a link leads; in a drawing too, whose links have no href of their own.
const addressOf = (link) => new URL(link.getAttribute("href"), location.href).href;

// --- the theme ---

function showTheme() {
  const theme = localStorage.getItem("theme");
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
}
showTheme();

function turnTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  localStorage.setItem("theme", dark ? "light" : "dark");
  showTheme();
}

// --- times ---

const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "narrow" });

function showTimes(within = document) {
  for (const time of all("time[datetime]", within)) {
    const seconds = (new Date(time.dateTime) - Date.now()) / 1000;
    const steps = [["second", 1, 60], ["minute", 60, 3600], ["hour", 3600, 86400], ["day", 86400, 14 * 86400]];
    const step = steps.find(([, , most]) => Math.abs(seconds) < most);
    if (step) time.textContent = relative.format(Math.trunc(seconds / step[1]), step[0]);
  }
}

// --- pieces of the page ---

// parse makes the element of a text of HTML, or of a group of SVG, that the server has sent.
function parse(text) {
  const template = document.createElement("template");
  const drawn = text.startsWith("<g");
  template.innerHTML = policy.createHTML(drawn ? `<svg>${text}</svg>` : text);
  return drawn ? template.content.firstElementChild.firstElementChild : template.content.firstElementChild;
}

const focusable = "a[href], button, summary, input, select, textarea";

// isEdited reports whether a person has changed a field of a form.
function isEdited(field) {
  if (field.matches("[type=hidden], [type=range]")) return false;
  if (field.matches("select")) return [...field.options].some((o, i) => o.selected !== (o.defaultSelected || i === 0 && !field.querySelector("[selected]")));
  return field.matches("[type=checkbox]") ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
}

// replace puts a new element in the place of an old one: what was opened stays open, and what had the
// focus keeps it.
function replace(old, fresh, whole = false) {
  const key = (details) => details.dataset.key || details.id;
  const open = new Map(all("details", old).filter(key).map((d) => [key(d), d.open]));
  const focus = old.contains(document.activeElement) ? document.activeElement : null;
  if (!whole && (focus && typing(focus) || all("input, textarea, select", old).some(isEdited))) { // nobody's typing is lost
    putOff.set(old.id, fresh);
    return;
  }
  putOff.delete(old.id);
  const scrolled = all("[data-scroll]", old).map((e) => [e.dataset.scroll, e.scrollTop, e.scrollLeft]);
  old.replaceWith(fresh);
  for (const d of all("details", fresh)) if (open.has(key(d))) d.open = open.get(key(d));
  for (const [name, top, left] of scrolled) {
    const e = find(`[data-scroll="${CSS.escape(name)}"]`, fresh);
    if (e) e.scrollTo(left, top);
  }
  if (focus) {
    const near = focus.parentElement.closest("[id]"); // it is like the old one: its own id, its address, or its place
    const again = focus.id ? document.getElementById(focus.id) : all("a[href]", fresh).find((a) => addressOf(a) === addressOf(focus)) ||
      find(`#${CSS.escape(near.id)} ${focus.tagName}`) || all(focusable, fresh)[all(focusable, old).indexOf(focus)];
    if (again) again.focus({ preventScroll: true });
  }
  showTimes(fresh);
}

const putOff = new Map(); // pieces that wait until a person has left what they replace

addEventListener("focusout", () => setTimeout(() => {
  for (const [id, fresh] of [...putOff]) {
    const old = document.getElementById(id);
    if (old) replace(old, fresh);
    else putOff.delete(id);
  }
}));

let waiting = null; // orders of lists that wait until the pointer has left them

// apply shows a change: new pieces, and the orders of lists.
function apply(change) {
  const made = new Map();
  const few = Object.keys(change.pieces || {}).length <= 20; // else all rows would shine at all times
  for (const [id, text] of Object.entries(change.pieces || {})) {
    const fresh = parse(text);
    if (!fresh) continue;
    const old = document.getElementById(id);
    if (old) {
      if (few && old.matches("tr, li")) fresh.classList.add("fresh");
      replace(old, fresh);
    }
    else made.set(id, fresh);
  }
  const lists = { ...(waiting ? waiting.lists : {}), ...(change.lists || {}) };
  const listed = new Set(Object.values(lists).flat());
  if (waiting) for (const [id, e] of waiting.made) if (!made.has(id) && listed.has(id)) made.set(id, e);
  waiting = null;
  const known = Object.keys(lists).every((id) => document.getElementById(id)) && [...made.keys()].every((id) => listed.has(id));
  if (!known) { // the page has other parts now
    if (!typing(document.activeElement) && !all("main input, main textarea, main select").some(isEdited)) go(location.href, false);
    return;
  }
  for (const [id, order] of Object.entries(lists)) {
    const list = document.getElementById(id);
    if (list.matches(":hover") && matchMedia("(hover: hover)").matches) { // no row moves under the pointer
      waiting = waiting || { lists: {}, made };
      waiting.lists[id] = order;
      list.addEventListener("mouseleave", () => apply({}), { once: true });
      continue;
    }
    const rows = new Map([...list.children].map((e) => [e.id, e]));
    let at = list.firstElementChild;
    for (const row of order) {
      const e = rows.get(row) || made.get(row);
      if (!e) continue;
      if (!rows.has(row)) {
        if (few) e.classList.add("fresh");
        showTimes(e);
      }
      if (e === at) at = at.nextElementSibling;
      else list.insertBefore(e, at);
      rows.delete(row);
    }
    for (const e of rows.values()) if (!all("input, textarea, select", e).some(isEdited)) e.remove();
  }
  const held = find("#badge");
  document.title = document.title.replace(/^\(\d+\) /, "");
  if (held && held.dataset.held > 0) document.title = `(${held.dataset.held}) ${document.title}`;
}

// --- the stream ---

let stream = null;
let seen = ""; // the digest of what the page shows, which the server compares
let retry = 0;
let away = ""; // since when there is no connection

function say(state, text) {
  const live = find("#live");
  if (!live) return;
  live.dataset.state = state;
  live.textContent = text;
}

function follow() {
  stop();
  const main = find("main");
  if (!main.dataset.seen) {
    say("still", "");
    return;
  }
  seen = seen || main.dataset.seen;
  const url = new URL(location.href);
  url.searchParams.set("seen", seen);
  url.hash = "";
  stream = new EventSource(url);
  const here = (event) => {
    seen = event.lastEventId || seen;
    retry = 0;
    away = "";
    say("live", "live");
  };
  stream.addEventListener("open", () => say("live", "live"));
  stream.addEventListener("begun", here);
  stream.addEventListener("change", (event) => {
    here(event);
    apply(JSON.parse(event.data));
  });
  stream.addEventListener("error", () => {
    away = away || new Date().toLocaleTimeString("en-GB");
    say("away", `not connected since ${away}: this page may be old`);
    stop();
    if (retry > 0) fetch(location.href, { headers: { Accept: "text/html" } }).then((a) => a.redirected && location.assign(a.url), () => {}); // to the login
    retry = Math.min(retry + 1, 10);
    setTimeout(() => document.hidden || stream || follow(), 500 * retry);
  });
}

function stop() {
  if (stream) stream.close();
  stream = null;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    stop();
    say("paused", "paused");
  } else follow();
});
addEventListener("pagehide", stop);
addEventListener("pageshow", (event) => event.persisted && follow());

// --- going to another moment of the same page, without losing the place ---

let going = null;

async function go(url, push) {
  if (going) going.abort();
  going = new AbortController();
  stop();
  try {
    const answer = await fetch(url, { signal: going.signal, headers: { Accept: "text/html" } });
    if (answer.redirected || !answer.ok) {
      location.href = url;
      return;
    }
    const text = await answer.text();
    const page = new DOMParser().parseFromString(policy.createHTML(text), "text/html");
    const main = find("main");
    const scroll = scrollY;
    replace(main, document.adoptNode(find("main", page)), true);
    document.title = page.title;
    if (push) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
    scrollTo(0, scroll);
    seen = "";
    waiting = null;
    putOff.clear();
    shown = location.pathname + location.search;
    follow();
  } catch (error) {
    if (error.name !== "AbortError") location.href = url;
  }
}
let shown = location.pathname + location.search;
addEventListener("popstate", () => shown === location.pathname + location.search || go(location.href, false)); // else it leads within the page

document.addEventListener("input", (event) => {
  const slider = event.target.closest("#slider");
  if (!slider) return;
  const url = new URL(location.href);
  if (slider.value === slider.max) url.searchParams.delete("at");
  else url.searchParams.set("at", slider.value);
  find("#slider-at").textContent = slider.value;
  clearTimeout(slider.pending);
  slider.pending = setTimeout(() => go(url, false).then(() => find("#slider")?.focus({ preventScroll: true })), 60);
});

// --- clicks ---

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  if (button) {
    const does = { copy: () => copy(button), theme: turnTheme, larger: () => zoom(1.25), smaller: () => zoom(0.8), fit: () => zoom(0) };
    does[button.dataset.do]?.();
    return;
  }
  const link = event.target.closest("a[data-swap]");
  if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
    event.preventDefault();
    go(addressOf(link), true);
    return;
  }
  for (const menu of all("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

// copy puts the text of another element into the clipboard.
async function copy(button) {
  await navigator.clipboard.writeText(find("#" + button.dataset.of).textContent);
  button.textContent = "Copied";
}

// A menu that would stand out of the window opens further to the left.
document.addEventListener("toggle", (event) => {
  const menu = event.target.matches("details.menu[open]") && find(":scope > div", event.target);
  const over = menu ? menu.getBoundingClientRect().right + 8 - root.clientWidth : 0;
  if (over > 0) menu.style.left = `${menu.offsetLeft - over}px`;
}, true);

// --- the graph ---

function zoom(by) {
  const drawing = find(".drawing svg");
  if (!drawing) return;
  const width = Number(drawing.dataset.width);
  const now = drawing.getBoundingClientRect().width / width;
  const factor = by ? Math.min(4, Math.max(0.1, now * by)) : Math.min(1, (drawing.parentElement.clientWidth - 2) / width);
  drawing.setAttribute("width", Math.round(width * factor));
  drawing.setAttribute("height", Math.round(Number(drawing.dataset.height) * factor));
}

// --- keys ---

const typing = (e) => e.matches?.("input:not([type=range]):not([type=checkbox]), textarea, select");
let before = "";

function row(step) {
  const rows = all("[data-row]");
  if (!rows.length) return;
  const at = rows.findIndex((r) => r.classList.contains("at"));
  rows[at]?.classList.remove("at");
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  next.classList.add("at");
  next.scrollIntoView({ block: "nearest" });
  find("a", next)?.focus({ preventScroll: true });
}

function step(by) {
  const slider = find("#slider");
  if (!slider) return;
  slider.value = Number(slider.value) + by;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
}

function press(id) {
  const e = document.getElementById(id);
  if (e) e.click();
  return Boolean(e);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    const menu = find("details.menu[open]");
    if (menu) {
      menu.open = false;
      find("summary", menu).focus();
    } else if (typing(event.target)) event.target.blur();
    else if (!press("close")) press("back");
    return;
  }
  if (typing(event.target) || localStorage.getItem("keys") === "off") return;
  const key = before + event.key;
  before = event.key === "g" ? "g" : "";
  const keys = {
    "?": () => press("to-keys"), "/": () => find("input[type=search]")?.focus(), j: () => row(1), k: () => row(-1),
    gr: () => press("to-runs"), gi: () => press("to-inbox"), gp: () => press("to-plans"), gs: () => press("to-scripts"),
    f: () => press("only-failed"), "[": () => step(-1), "]": () => step(1), "{": () => step(-10), "}": () => step(10),
    l: () => press("to-now"), d: () => press("to-compare"),
    w: () => document.activeElement.closest?.("[data-row], .tree li")?.querySelector("a.value, a[data-why]")?.click(),
    a: () => focusOn("approve"), x: () => focusOn("reject"),
  };
  if (keys[key]) {
    event.preventDefault();
    keys[key]();
  }
});

// focusOn puts the focus on the button that approves or rejects the row's call: pressing it is the
// person's own act.
function focusOn(what) {
  const within = document.activeElement.closest?.("[data-row]") || find("[data-row].at") || document;
  const button = find(`[data-decide="${what}"]`, within);
  if (!button) return;
  const details = button.closest("details");
  if (details) details.open = true;
  (what === "reject" ? find("input[name=reason]", within) || button : button).focus();
}

const keysOff = find("#keys-off");
if (keysOff) {
  keysOff.checked = localStorage.getItem("keys") === "off";
  keysOff.addEventListener("change", () => localStorage.setItem("keys", keysOff.checked ? "off" : "on"));
}

showTimes();
setInterval(() => document.hidden || showTimes(), 5000);
follow();
