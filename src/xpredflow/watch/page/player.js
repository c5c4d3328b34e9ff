// Plays recordings in lock-step by pass; where their lines come from is not its business.

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16, 64];
const PASSES_PER_SECOND = 3;

class Player {
  constructor(traces) {
    this.traces = traces;
    this.parts = Object.fromEntries(["chooser", "prompts", "prompt", "play", "back", "forth", "scrub",
      "pass", "speed", "difference", "columns", "details"].map((id) => [id, document.getElementById(id)]));
    this.details = new Details(this.parts.details);
    this.details.jump = (pass) => this.go(pass);
    this.playing = false;
    this.pass = 0;
    this.speed = 1;
    this.views = [];
    this.decorate = () => {}; // a live page adds what it needs to a column
    this.chosen = { column: 0, place: -1 };
    for (const speed of SPEEDS) this.parts.speed.append(element("option", { value: speed }, `${speed}×`));
    this.parts.speed.value = "1";
    for (const sample of document.querySelectorAll(".legend .token")) {
      sample.style.setProperty("--t", sample.dataset.t || 0.6);
    }
    this.listen();
  }

  listen() {
    const { play, back, forth, scrub, speed, prompts } = this.parts;
    play.addEventListener("click", () => this.toggle());
    back.addEventListener("click", () => this.step(-1));
    forth.addEventListener("click", () => this.step(1));
    scrub.addEventListener("input", () => { this.pause(); this.go(Number(scrub.value)); });
    speed.addEventListener("change", () => { this.speed = Number(speed.value); });
    prompts.addEventListener("change", () => this.open(Number(prompts.value)));
    document.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      for (const view of this.views) view.heat.draw();
    });
  }

  start() {
    const groups = this.traces.groups();
    this.parts.chooser.hidden = groups.length < 2;
    this.parts.prompts.replaceChildren(...groups.map((group, i) =>
      element("option", { value: i }, `${i + 1}: ${promptText(group[0].prompt).slice(0, 60)}`)));
    this.open(0);
  }

  open(number) {
    this.pause();
    const group = this.traces.groups()[number] || [];
    this.parts.prompt.textContent = group.length ? promptText(group[0].prompt) : "";
    this.views = group.map((recording, column) => {
      const view = new AnswerView(recording, column + 1, (place, now) => this.select(column, place, now));
      view.heat.jump = (pass) => { this.pause(); this.go(pass); };
      this.decorate(view);
      return view;
    });
    this.parts.columns.replaceChildren(...this.views.map((view) => view.root));
    for (const view of this.views) view.heat.draw();
    this.chosen = { column: 0, place: -1 };
    this.parts.details.hidden = true;
    this.go(this.last);
  }

  get last() {
    return Math.max(0, ...this.views.map((view) => view.recording.passes));
  }

  refresh() {
    // More lines have come: whoever was at the end stays there.
    const follows = this.pass >= this.shownLast;
    this.go(follows ? this.last : this.pass);
  }

  go(pass) {
    this.pass = Math.max(0, Math.min(pass, this.last));
    this.shownLast = this.last;
    const { scrub } = this.parts;
    scrub.max = this.last;
    scrub.value = this.pass;
    scrub.setAttribute("aria-valuetext", `pass ${this.pass} of ${this.last}`);
    this.parts.pass.textContent = `pass ${this.pass} of ${this.last}`;
    const differs = this.difference();
    for (const view of this.views) view.show(this.pass, differs);
    this.tellDifference(differs);
    if (this.chosen.place >= 0) this.tell();
  }

  difference() {
    // The first place at which the answers do not hold the same token after this pass.
    if (this.views.length < 2) return -1;
    const recordings = this.views.map((view) => view.recording);
    const length = Math.min(...recordings.map((one) => one.positions.length));
    for (let place = 0; place < length; place++) {
      const held = recordings.map((one) => one.piece(one.token(this.pass, place)));
      if (new Set(held).size > 1) return place;
    }
    return -1;
  }

  tellDifference(place) {
    const { difference } = this.parts;
    difference.hidden = this.views.length < 2;
    difference.textContent = place < 0 ? "No difference after this pass."
      : `First difference after this pass: token ${place + 1} of the answer.`;
  }

  select(column, place, now) {
    // `now`: by a click, a tap or a key, which also keep it selected.
    if (!now && this.chosen.kept) return;
    this.chosen = { column, place, kept: now && !this.sameAs(column, place) };
    this.views.forEach((view, i) => view.select(i === column ? place : -1, this.pass));
    for (const view of this.views) view.show(this.pass, this.difference());
    this.tell();
  }

  sameAs(column, place) {
    return this.chosen.kept && this.chosen.column === column && this.chosen.place === place;
  }

  tell() {
    const { column, place } = this.chosen;
    this.details.show(this.views[column].recording, place, this.pass);
  }

  step(by) {
    this.pause();
    this.go(this.pass + by);
  }

  toggle() {
    if (this.playing) {
      this.pause();
      return;
    }
    if (this.pass >= this.last) this.go(0);
    this.playing = true;
    this.parts.play.textContent = "Pause";
    this.parts.play.setAttribute("aria-pressed", "true");
    this.played = performance.now();
    this.due = 0;
    requestAnimationFrame((now) => this.tick(now));
  }

  tick(now) {
    if (!this.playing) return;
    this.due += (Math.max(0, now - this.played) / 1000) * PASSES_PER_SECOND * this.speed;
    this.played = now;
    const whole = Math.floor(this.due);
    this.due -= whole;
    if (whole) this.go(this.pass + whole);
    if (this.pass >= this.last) this.pause();
    else requestAnimationFrame((later) => this.tick(later));
  }

  pause() {
    this.playing = false;
    this.parts.play.textContent = "Play";
    this.parts.play.setAttribute("aria-pressed", "false");
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("textarea, input:not([type=range])") && event.key !== "Escape") return;
    if (["SELECT", "INPUT", "BUTTON", "SUMMARY"].includes(event.target.tagName) && this.isTheirs(event)) return;
    const acts = {
      " ": () => this.toggle(),
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      Home: () => { this.pause(); this.go(0); },
      End: () => { this.pause(); this.go(this.last); },
      "+": () => this.faster(1),
      "-": () => this.faster(-1),
      ArrowUp: () => this.walk(-1),
      ArrowDown: () => this.walk(1),
      Escape: () => { this.chosen.kept = false; this.parts.details.hidden = true; },
    };
    const act = acts[event.key] || (/^[1-4]$/.test(event.key) && (() => this.column(Number(event.key) - 1)));
    if (!act) return;
    event.preventDefault();
    act();
  }

  isTheirs(event) {
    // Keys that the focused control needs for itself.
    const own = { SELECT: /^(Arrow|Home|End| )/, INPUT: /^(Arrow|Home|End)/, BUTTON: /^ $/, SUMMARY: /^ $/ };
    return own[event.target.tagName].test(event.key);
  }

  faster(by) {
    const at = SPEEDS.indexOf(this.speed) + by;
    this.speed = SPEEDS[Math.max(0, Math.min(at, SPEEDS.length - 1))];
    this.parts.speed.value = String(this.speed);
  }

  walk(by) {
    const { column, place } = this.chosen;
    if (!this.views[column]) return;
    const count = this.views[column].spans.length;
    this.chosen.kept = false;
    this.select(column, Math.max(0, Math.min(place + by, count - 1)), true);
    this.views[column].spans[this.chosen.place].focus();
  }

  column(number) {
    if (!this.views[number]) return;
    this.chosen.kept = false;
    this.select(number, Math.max(0, this.chosen.place), true);
  }
}
