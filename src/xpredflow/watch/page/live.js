// The live page: asks the server for traces, a stream per decoder, and branches off from them.

const MOST_COLUMNS = 4;
const PEER = "threshold:0.9";

class LiveColumns {
  // What the player takes for traces: the recordings that are being made, in their columns.
  constructor() {
    this.recordings = [];
  }

  groups() {
    return this.recordings.length ? [this.recordings] : [];
  }
}

class Live {
  constructor() {
    this.columns = new LiveColumns();
    this.player = new Player(this.columns);
    this.player.details.branch = (choice) => this.branch(choice);
    this.player.decorate = (view) => this.addRemover(view);
    this.parts = Object.fromEntries(["ask", "question", "decoders", "known", "length", "budget", "seed",
      "keybox", "key", "decode", "stop", "news"].map((id) => [id, document.getElementById(id)]));
    this.streams = new Map();
    this.due = false;
    const { ask, stop, key } = this.parts;
    ask.addEventListener("submit", (event) => { event.preventDefault(); this.decode(); });
    stop.addEventListener("click", () => this.stop());
    key.addEventListener("change", () => this.begin());
  }

  async begin() {
    // What is served; a server with a token is asked again when the token is there.
    const response = await this.fetched({});
    if (!response) return;
    const info = await response.json();
    document.title = `xpredflow: ${info.model}`;
    document.querySelector("h1").textContent = `${info.model}: how an answer settles`;
    this.parts.length.max = info.max_gen_length;
    this.parts.known.replaceChildren(...info.decoders.map(({ name, summary }) =>
      element("option", { value: name }, summary)));
    if (!this.parts.decoders.querySelector("input")) {
      this.addDecoder(info.decoder);
      this.addDecoder(info.decoder === PEER ? "flow" : PEER);
      for (let i = 2; i < MOST_COLUMNS; i++) this.addDecoder("");
    }
    this.tell("");
  }

  addDecoder(value) {
    const number = this.parts.decoders.querySelectorAll("input").length + 1;
    const input = element("input", { type: "text", list: "known", maxlength: 256, value,
      "aria-label": `Decoder ${number}`, placeholder: "none" });
    this.parts.decoders.append(element("span", {}, input));
  }

  async fetched(options) {
    // The response, or null when it is an error, which is told.
    const headers = { ...options.headers };
    if (this.parts.key.value) headers.Authorization = `Bearer ${this.parts.key.value}`;
    try {
      const response = await fetch("live", { ...options, headers });
      if (response.ok) return response;
      if (response.status === 401) this.parts.keybox.hidden = false;
      const body = await response.json();
      this.tell(body.error.message, true);
    } catch (error) {
      if (error.name !== "AbortError") this.tell(`the server does not answer: ${error.message}`, true);
    }
    return null;
  }

  tell(words, failed = false) {
    this.parts.news.textContent = words;
    this.parts.news.classList.toggle("failed", failed);
  }

  decode() {
    this.stop();
    this.streams = new Map();
    this.columns.recordings = [];
    this.player.open(0);
    this.tell("");
    const { question, length, budget, seed, decoders } = this.parts;
    const shared = { prompt: question.value, changes: [] };
    if (length.value) shared.max_tokens = Number(length.value);
    if (budget.value.trim()) shared.budget = /^\d+$/.test(budget.value.trim()) ? Number(budget.value) : budget.value.trim();
    if (seed.value) shared.seed = Number(seed.value);
    const chosen = [...decoders.querySelectorAll("input")].map((input) => input.value.trim()).filter(Boolean);
    (chosen.length ? chosen : [null]).forEach((decoder, column) =>
      this.open(decoder ? { ...shared, decoder } : shared, column));
  }

  branch({ recording, place, pass, token, text, hold }) {
    const kept = recording.request.changes.filter((change) => change.after <= pass);
    const change = { after: pass, position: recording.positions[place], hold };
    if (token !== undefined) change.token = token;
    if (text !== undefined) change.text = text;
    const request = { ...recording.request, changes: [...kept, change] };
    this.open(request, this.columnFor(recording));
  }

  columnFor(origin) {
    // Right of the origin; where there is no room, the newest that is not the origin gives way.
    const { recordings } = this.columns;
    if (recordings.length < MOST_COLUMNS) {
      const right = recordings.map((one) => one.column).filter((column) => column > origin.column);
      return right.length ? (origin.column + Math.min(...right)) / 2 : origin.column + 1;
    }
    const branches = recordings.filter((one) => one !== origin && one.request.changes.length);
    const others = recordings.filter((one) => one !== origin);
    return (branches.length ? branches : others).at(-1).column;
  }

  async open(request, column) {
    const stream = new AbortController();
    this.streams.set(stream, null);
    this.parts.stop.hidden = false;
    const response = await this.fetched({
      method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify(request), signal: stream.signal,
    });
    try {
      if (response) await this.follow(response, request, column, stream);
    } catch (error) {
      this.fail(stream, error.name === "AbortError" ? "stopped" : "the connection was lost");
    }
    this.streams.delete(stream);
    this.parts.stop.hidden = !this.streams.size;
    this.refresh();
  }

  async follow(response, request, column, stream) {
    let traces = null;
    for await (const line of linesOf(response)) {
      if (line.error) {
        this.fail(stream, line.error.message);
        return;
      }
      if (line.kind === "header") {
        // a row that a server had to begin again begins here again
        traces = new Traces();
        traces.add(line);
        this.place(traces.recordings[0], request, column, stream);
      } else {
        traces.add(line);
        this.refresh();
      }
    }
  }

  place(recording, request, column, stream) {
    if (!this.streams.has(stream)) return; // something else is asked for by now
    Object.assign(recording, { request, column, live: true });
    const [old] = this.columns.recordings.filter((one) => one.column === column);
    if (old && old !== this.streams.get(stream)) this.abort(old);
    this.columns.recordings = [...this.columns.recordings.filter((one) => one !== old), recording]
      .sort((one, other) => one.column - other.column);
    this.streams.set(stream, recording);
    this.player.open(0);
  }

  fail(stream, words) {
    if (!this.streams.has(stream)) return;
    const recording = this.streams.get(stream);
    if (recording) recording.failure = words;
    this.tell(words, true);
  }

  stop() {
    for (const stream of this.streams.keys()) stream.abort();
  }

  abort(recording) {
    for (const [stream, made] of this.streams) if (made === recording) stream.abort();
  }

  refresh() {
    // Once per picture of the screen, however many passes came.
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => { this.due = false; this.player.refresh(); });
  }

  addRemover(view) {
    const button = element("button", { type: "button", class: "remove", "aria-label": `Remove ${view.recording.title}` }, "×");
    button.addEventListener("click", () => {
      this.abort(view.recording);
      this.columns.recordings = this.columns.recordings.filter((one) => one !== view.recording);
      this.player.open(0);
    });
    view.root.prepend(button);
  }
}

async function* linesOf(response) {
  // The data of server-sent events, one JSON object each.
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      if (event.startsWith("data: ")) yield JSON.parse(event.slice(6));
    }
  }
}

window.live = new Live();
window.player = window.live.player;
window.player.start();
window.live.begin().then(() => { document.documentElement.dataset.ready = "true"; });
