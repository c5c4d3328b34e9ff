"use strict";
// The lines of traces -> Recordings: what watch/trace_encoder.py writes, whoever hands it on.

const PARTS = 1000;
const COLUMNS = { tokens: 1, progress: 1, confidence: 1, step_size: 1, candidates: 4, probabilities: 4 };
const OPEN = "░", BREAK = "↵", END = "∎", BROKEN = "\uFFFD";

class Recording {
  // One decoder on one prompt: a frame per pass, each over all open positions.
  constructor(header, layout, prompt, pieces) {
    this.header = header;
    this.layout = layout;
    this.prompt = prompt;
    this.pieces = pieces;
    this.title = header.title || header.decoder;
    this.positions = layout.positions.flatMap(([first, count]) =>
      Array.from({ length: count }, (_, i) => first + i));
    this.ends = new Set(header.ends);
    this.frames = [];
    this.decoded = null;
    this.verdict = null;
  }

  add(line) {
    const before = this.frames[this.frames.length - 1];
    const span = line.span || before.span;
    const columns = {};
    for (const [name, width] of Object.entries(COLUMNS)) {
      const old = before ? before.columns[name] : new Int32Array(this.positions.length * width).fill(-1);
      columns[name] = line[name] ? changed(old, line[name], width, span) : old;
    }
    this.frames.push({
      columns, span,
      reedited: new Set(line.reedited || []),
      committed: new Set(line.committed || []),
    });
  }

  get passes() {
    return this.frames.length;
  }

  frame(pass) {
    // After so many passes; null before the first.
    return pass > 0 ? this.frames[Math.min(pass, this.passes) - 1] : null;
  }

  token(pass, place) {
    const frame = this.frame(pass);
    return frame ? frame.columns.tokens[place] : -1;
  }

  share(name, pass, place) {
    // A number from 0 to 1; null where there is none.
    const frame = this.frame(pass);
    if (!frame) return null;
    if (name === "confidence" && frame.columns.candidates[place * 4] >= 0) {
      return frame.columns.probabilities[place * 4] / PARTS;
    }
    const value = frame.columns[name][place];
    return value < 0 ? null : value / PARTS;
  }

  candidates(pass, place) {
    const frame = this.frame(pass);
    if (!frame || frame.columns.candidates[place * 4] < 0) return [];
    return [0, 1, 2, 3].map((i) => ({
      token: frame.columns.candidates[place * 4 + i],
      probability: frame.columns.probabilities[place * 4 + i] / PARTS,
    }));
  }

  piece(token) {
    const text = this.pieces.get(String(token));
    return text === undefined ? `${token} ` : text;
  }

  texts(tokens) {
    // One text per token; a character made of several byte tokens stands at its first.
    const found = [];
    while (found.length < tokens.length) {
      const from = found.length;
      let run = "", length = 0, text = tokens[from] < 0 ? OPEN : BROKEN;
      for (let i = from; tokens[from] >= 0 && i < Math.min(from + 4, tokens.length) && tokens[i] >= 0; i++) {
        run = run ? `${run} ${tokens[i]}` : String(tokens[i]);
        const known = i === from ? this.piece(tokens[i]) : this.pieces.get(run) || BROKEN;
        if (!known.includes(BROKEN)) {
          text = known;
          length = i - from;
          break;
        }
      }
      found.push(text, ...new Array(length).fill(""));
    }
    return found;
  }

  history(place, until) {
    // The passes that changed, re-edited or committed the token at a place.
    const found = [];
    let before = -1;
    for (let pass = 1; pass <= Math.min(until, this.passes); pass++) {
      const frame = this.frames[pass - 1];
      const token = frame.columns.tokens[place];
      const reedited = frame.reedited.has(place), committed = frame.committed.has(place);
      if (token >= 0 && (token !== before || reedited || committed)) {
        found.push({ pass, token, reedited, committed, isNew: token !== before });
      }
      before = token;
    }
    return found;
  }
}

function changed(old, [at, values], width, [first, count]) {
  const column = old.slice();
  if (at === null) {
    column.set(values, first * width);
  } else {
    at.forEach((place, i) => {
      for (let k = 0; k < width; k++) column[place * width + k] = values[i * width + k];
    });
  }
  return column;
}

class Traces {
  // Takes lines as they come; `recordings` grow with them.
  constructor() {
    this.recordings = [];
    this.rows = new Map();
    this.pieces = new Map();
  }

  add(line) {
    if (line.kind === "header") {
      this.pieces = new Map();
      this.rows = new Map(line.layouts.map((layout, i) =>
        [layout.row, new Recording(line, layout, line.prompts[i], this.pieces)]));
      this.recordings.push(...this.rows.values());
    } else if (line.kind === "frame") {
      for (const [run, text] of Object.entries(line.pieces || {})) this.pieces.set(run, text);
      this.rows.get(line.row).add(line);
    } else if (line.kind === "decoded") {
      this.rows.get(line.row).decoded = line;
    } else if (line.kind === "verdict") {
      this.rows.get(line.row).verdict = line;
    }
  }

  groups() {
    // Recordings of one prompt stand together.
    const groups = new Map();
    for (const one of this.recordings.filter((recording) => recording.passes)) {
      const key = JSON.stringify(one.prompt);
      groups.set(key, [...(groups.get(key) || []), one]);
    }
    return [...groups.values()];
  }
}

function promptText(prompt) {
  if (typeof prompt === "string") return prompt;
  const last = Array.isArray(prompt) ? prompt[prompt.length - 1] : null;
  return last && typeof last === "object" ? String(last.content) : JSON.stringify(prompt);
}
