// Progress as a picture: a column per position, a row per pass, a pixel each.

const MOST_ROWS = 2048;

class HeatMap {
  constructor(recording, select) {
    this.recording = recording;
    this.canvas = element("canvas", { role: "img" });
    this.cursor = element("div", { class: "cursor" });
    this.column = element("div", { class: "column" });
    this.tip = element("p", { class: "tip" }, "progress: positions across, passes down");
    const frame = element("div", { class: "heat" }, this.canvas, this.column, this.cursor);
    this.root = element("figure", {}, frame, element("figcaption", {}, this.tip));
    this.jump = () => {};
    frame.addEventListener("mousemove", (event) => {
      const { place, pass } = this.at(event);
      this.tell(place, pass);
      select(place, false);
    });
    frame.addEventListener("click", (event) => {
      const { place, pass } = this.at(event);
      select(place, true);
      this.jump(pass);
    });
    this.draw();
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const within = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    return {
      place: within((event.clientX - box.left) / box.width, this.recording.positions.length),
      pass: 1 + within((event.clientY - box.top) / box.height, this.recording.passes),
    };
  }

  tell(place, pass) {
    const t = this.recording.share("progress", pass, place);
    const token = this.recording.token(pass, place);
    const text = token < 0 ? "still open" : JSON.stringify(this.recording.piece(token));
    this.tip.textContent = `pass ${pass}, position ${this.recording.positions[place]}: ${text}` +
      (t === null ? "" : `, progress ${t.toFixed(2)}`);
  }

  draw() {
    // Long recordings are thinned: a pixel row may stand for several passes.
    const { recording, canvas } = this;
    const width = recording.positions.length, passes = recording.passes;
    const height = Math.min(passes, MOST_ROWS);
    this.drawn = passes;
    this.root.hidden = !passes;
    if (!passes) return;
    canvas.width = width;
    canvas.height = height;
    canvas.setAttribute("aria-label", `Progress of ${width} positions over ${passes} passes of ${recording.title}`);
    const style = getComputedStyle(document.documentElement);
    const [empty, full, mark] = ["--empty", "--full", "--reedit"].map((name) => rgb(style.getPropertyValue(name)));
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    for (let y = 0; y < height; y++) {
      const pass = Math.ceil(((y + 1) * passes) / height);
      const frame = recording.frame(pass);
      for (let x = 0; x < width; x++) {
        const t = Math.max(frame.columns.progress[x], 0) / PARTS;
        for (let k = 0; k < 3; k++) {
          image.data[(y * width + x) * 4 + k] =
            frame.reedited.has(x) ? mark[k] : empty[k] + (full[k] - empty[k]) * t;
        }
        image.data[(y * width + x) * 4 + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
  }

  show(pass, place) {
    const { recording } = this;
    if (recording.passes !== this.drawn) this.draw();
    const share = Math.min(pass, recording.passes) / Math.max(recording.passes, 1);
    this.cursor.style.top = `${100 * share}%`;
    this.column.hidden = place < 0;
    this.column.style.left = `${(100 * (place + 0.5)) / recording.positions.length}%`;
  }
}

function rgb(colour) {
  const digits = colour.trim().slice(1);
  return [0, 2, 4].map((i) => parseInt(digits.slice(i, i + 2), 16));
}
