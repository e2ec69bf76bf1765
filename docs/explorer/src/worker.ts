// The compiled core in a worker: questions in, answers out, both as JSON text (sim/doors/web/explorer.h).
import createCore from "virtual:core-script";
import wasm from "virtual:core-wasm";

async function binary(): Promise<Uint8Array> {
  const packed = Uint8Array.from(atob(wasm), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const core = binary().then((wasmBinary) => createCore({ wasmBinary }));

self.onmessage = async (event: MessageEvent<{ id: number; question: string }>) => {
  const { id, question } = event.data;
  try {
    const started = performance.now();
    const answer = (await core).ccall("specsim_answer", "string", ["string"], [question]);
    self.postMessage({ id, answer, ms: performance.now() - started });
  } catch (error) {
    self.postMessage({ id, answer: JSON.stringify({ error: `the simulator stopped: ${error}` }), ms: 0 });
  }
};
