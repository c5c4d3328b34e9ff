// What is known of one token after one pass: candidates, numbers, and how it came to be held.

class Details {
  constructor(root) {
    this.root = root;
    this.jump = () => {};
    this.branch = null; // a live page sets it: called with what to change, and where
    this.hold = true;
  }

  show(recording, place, pass) {
    this.root.hidden = false;
    const at = Math.min(pass, recording.passes);
    const token = recording.token(at, place);
    const close = element("button", { type: "button", class: "close", "aria-label": "Close" }, "×");
    close.addEventListener("click", () => { this.root.hidden = true; });
    const head = element("h3", {},
      `${recording.title}, position ${recording.positions[place]}, pass ${at}`);
    if (token < 0) {
      this.root.replaceChildren(close, head, element("p", {}, "Still open."));
      return;
    }
    this.root.replaceChildren(close, head,
      element("div", { class: "facts" },
        this.numbers(recording, place, at), this.candidates(recording, place, at),
        this.history(recording, place, at)));
    if (this.branch) this.root.append(this.branchForm(recording, place, at));
  }

  numbers(recording, place, pass) {
    const frame = recording.frame(pass);
    const list = element("dl", { class: "numbers" });
    const add = (name, text) => list.append(element("dt", {}, name), element("dd", {}, text));
    add("held token", quoted(recording, recording.token(pass, place)));
    const known = { progress: "progress t", confidence: "confidence c", step_size: "step size a" };
    for (const [name, words] of Object.entries(known)) {
      const value = recording.share(name, pass, place);
      add(words, value === null ? "–" : value.toFixed(3));
    }
    const done = [frame.committed.has(place) && "committed", frame.reedited.has(place) && "re-edited"];
    add("in this pass", done.filter(Boolean).join(", ") || (inside(frame, place) ? "–" : "not decoded"));
    return list;
  }

  candidates(recording, place, pass) {
    const rows = recording.candidates(pass, place).map(({ token, probability }) => {
      const bar = element("meter", { min: 0, max: 1, value: probability, "aria-hidden": "true" });
      return element("tr", {}, element("td", {}, quoted(recording, token)),
        element("td", {}, probability.toFixed(3)), element("td", {}, bar));
    });
    const caption = rows.length ? "candidates" : "candidates were not recorded";
    return element("table", {}, element("caption", {}, caption), element("tbody", {}, ...rows));
  }

  history(recording, place, pass) {
    const list = element("ol", { class: "history" });
    for (const event of recording.history(place, pass)) {
      const words = [event.isNew ? quoted(recording, event.token) : "same token",
        event.reedited && "re-edited", event.committed && "committed"];
      const button = element("button", { type: "button" }, `pass ${event.pass}: ${words.filter(Boolean).join(", ")}`);
      button.addEventListener("click", () => this.jump(event.pass));
      list.append(element("li", {}, button));
    }
    return element("section", { "aria-label": "History" }, element("p", { class: "caption" }, "history"), list);
  }

  branchForm(recording, place, pass) {
    // What else the position could hold: a candidate, a token by its text, or nothing.
    const form = element("fieldset", { class: "branch" }, element("legend", {}, "Branch: decode on from this pass with"));
    if (!inside(recording.frame(pass), place)) {
      form.append(element("p", {}, "another pass: this position was not decoded in this one"));
      return form;
    }
    const held = element("input", { type: "checkbox" });
    held.checked = this.hold;
    held.addEventListener("change", () => { this.hold = held.checked; });
    const add = (label, choice) => {
      const button = element("button", { type: "button" }, label);
      button.addEventListener("click", () => this.branch({ recording, place, pass, hold: this.hold, ...choice() }));
      form.append(button);
    };
    for (const { token } of recording.candidates(pass, place)) add(quoted(recording, token), () => ({ token }));
    const text = element("input", { type: "text", maxlength: 256, "aria-label": "Text of another token" });
    form.append(text);
    add("this text", () => (text.value ? { text: text.value } : {}));
    add("re-mask", () => ({}));
    form.append(element("label", {}, held, " hold it: the decoder may not revise it"));
    return form;
  }
}

function quoted(recording, token) {
  return recording.ends.has(token) ? `${END} (end)` : JSON.stringify(recording.piece(token));
}

function inside(frame, place) {
  return place >= frame.span[0] && place < frame.span[0] + frame.span[1];
}
