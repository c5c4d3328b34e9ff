// One recording as a column: what is said of it, its tokens shaded by progress, its heat map.

const SETTLED = 0.9;

function element(tag, attributes = {}, ...children) {
  // Texts are only ever added as text.
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

class AnswerView {
  constructor(recording, number, select) {
    this.recording = recording;
    this.status = element("p", { class: "status" });
    this.verdict = element("p", { class: "verdict" });
    this.tokens = element("div", { class: "answer", role: "group" });
    this.heat = new HeatMap(recording, select);
    this.settings = element("details", {}, element("summary", {}, "Settings"), settingsList(recording));
    const title = element("h2", {}, recording.title);
    title.title = `answer ${number}, model ${recording.header.model}`;
    this.root = element("article", { "aria-label": recording.title },
      title, this.status, this.verdict, this.tokens, this.heat.root, this.settings);
    this.spans = this.build();
    for (const kind of ["mouseover", "click"]) {
      this.tokens.addEventListener(kind, (event) => {
        const place = event.target.dataset && event.target.dataset.place;
        if (place !== undefined) select(Number(place), kind !== "mouseover");
      });
    }
    this.selected = -1;
  }

  build() {
    // A span per open position; of an infilled text its context stands between them.
    const spans = this.recording.positions.map((_, place) =>
      element("span", { class: "token", role: "button", tabindex: "-1", "data-place": place }));
    const context = this.recording.layout.context;
    if (!context) {
      this.tokens.append(...spans);
      return spans;
    }
    const places = new Map(this.recording.positions.map((position, place) => [position, place]));
    const texts = this.recording.texts(context.map((token, i) => (places.has(i) ? -1 : token)));
    context.forEach((_, i) => this.tokens.append(
      places.has(i) ? spans[places.get(i)] : element("span", { class: "context" }, texts[i])));
    return spans;
  }

  show(pass, differs) {
    const { recording } = this;
    const held = recording.positions.map((_, place) => recording.token(pass, place));
    const texts = recording.texts(held);
    const frame = recording.frame(pass);
    const marking = pass <= recording.passes;
    const over = pass >= recording.passes;
    let ended = false;
    this.spans.forEach((span, place) => {
      const t = recording.share("progress", pass, place) || 0;
      const isEnd = recording.ends.has(held[place]);
      const text = isEnd ? END : shown(texts[place], over || t >= SETTLED);
      if (span.textContent !== text) span.textContent = text;
      span.style.setProperty("--t", t);
      const reedited = marking && frame && frame.reedited.has(place);
      const committed = marking && frame && frame.committed.has(place);
      const kinds = ["token"];
      if (reedited) kinds.push("reedited");
      if (committed) kinds.push("committed");
      if (place === differs) kinds.push("differs");
      if (place === this.selected) kinds.push("selected");
      if (isEnd) kinds.push(ended ? "tail" : "end");
      ended = isEnd && !recording.layout.context;
      const name = kinds.join(" ");
      if (span.className !== name) span.className = name;
    });
    this.describe(pass, over);
    this.heat.show(pass, this.selected);
  }

  describe(pass, over) {
    const { recording } = this;
    const { decoded, verdict } = recording;
    // a step may take more than one pass, and finding the length some before the first
    const used = decoded ? decoded.passes : recording.passes;
    const words = used === 1 ? "1 pass" : `${used} passes`;
    this.tokens.setAttribute("aria-label",
      `Answer of ${recording.title} after pass ${Math.min(pass, recording.passes)} of ${recording.passes}`);
    const reason = decoded ? decoded.stop_reason : recording.failure || (recording.live ? "decoding…" : "not finished");
    this.status.textContent = over ? `${words}: ${reason}` : `pass ${pass} of at most ${recording.layout.budget}`;
    this.verdict.hidden = !(over && verdict);
    if (over && verdict) {
      const why = verdict.reason && !verdict.passed ? `, ${verdict.reason}` : "";
      this.verdict.textContent = (verdict.passed ? "✓ right" : "✗ wrong") + why;
      this.verdict.classList.toggle("wrong", !verdict.passed);
    }
  }

  select(place, pass) {
    if (this.spans[this.selected]) this.spans[this.selected].tabIndex = -1;
    this.selected = place;
    const span = this.spans[place];
    if (!span) return;
    span.tabIndex = 0;
    span.setAttribute("aria-label", tokenLabel(this.recording, pass, place));
  }
}

function shown(text, settled) {
  // A line break that is only guessed must not break the line.
  return settled ? text.replaceAll("\n", `${BREAK}\n`) : text.replaceAll("\n", BREAK);
}

function tokenLabel(recording, pass, place) {
  const token = recording.token(pass, place);
  const parts = [`position ${recording.positions[place]}`];
  if (token < 0) return `${parts[0]}, still open`;
  parts.push(`token ${JSON.stringify(recording.piece(token))}`);
  for (const name of ["progress", "confidence"]) {
    const value = recording.share(name, pass, place);
    if (value !== null) parts.push(`${name} ${value.toFixed(2)}`);
  }
  return parts.join(", ");
}

function settingsList(recording) {
  const list = element("dl");
  const { model, seed, decoder, rules, options } = recording.header;
  const own = { model, decoder, seed, budget: recording.layout.budget, ...options, ...rules };
  for (const [name, value] of Object.entries(own)) {
    list.append(element("dt", {}, name), element("dd", {}, typeof value === "string" ? value : JSON.stringify(value)));
  }
  return list;
}
