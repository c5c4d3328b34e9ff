// The page of recorded traces: their lines are in the page itself, compressed.

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

async function showRecorded() {
  const traces = new Traces();
  const lines = await unpacked(document.getElementById("trace").textContent);
  for (const line of lines.split("\n")) {
    if (line) traces.add(JSON.parse(line));
  }
  window.player = new Player(traces);
  window.player.start();
  document.documentElement.dataset.ready = "true";
}

showRecorded().catch((error) => {
  document.getElementById("difference").textContent = `This page cannot be shown: ${error.message}`;
});
