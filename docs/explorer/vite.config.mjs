// The build makes one file: index.html contains styles, script, the worker's script and the compiled core. So the page opens from a
// disk and from any host.
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

const core = process.env.SPECSIM_CORE ?? "../../build/web/core";

function coreInPage() {
  return {
    name: "core-in-page",
    resolveId(id) {
      if (id === "virtual:core-wasm") return "\0core-wasm";
      if (id === "virtual:core-script") return `${core}/core.mjs`;
      return null;
    },
    load(id) {
      if (id !== "\0core-wasm") return null;
      return `export default ${JSON.stringify(readFileSync(`${core}/core.wasm.gz`).toString("base64"))};`;
    },
  };
}

function oneFile() {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      const page = bundle["index.html"];
      let html = String(page.source);
      for (const [name, file] of Object.entries(bundle)) {
        if (file.type === "chunk") {
          const code = file.code.replaceAll("</script", "<\\/script");
          html = html.replace(new RegExp(`<script[^>]*src="[^"]*${file.fileName}"[^>]*></script>`), "");
          html = html.replace("</body>", () => `<script type="module">${code}</script>\n</body>`);
          delete bundle[name];
        } else if (name.endsWith(".css")) {
          html = html.replace(new RegExp(`<link[^>]*href="[^"]*${file.fileName}"[^>]*>`), () => `<style>${file.source}</style>`);
          delete bundle[name];
        }
      }
      page.source = html;
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [coreInPage(), oneFile()],
  worker: { format: "iife", plugins: () => [coreInPage()] },
  build: { target: "es2022", modulePreload: false, cssCodeSplit: false, assetsInlineLimit: 0, chunkSizeWarningLimit: 4000 },
});
