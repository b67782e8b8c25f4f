import react from "@vitejs/plugin-react";
import { defaultClientConditions, defineConfig } from "vite";

/** Where the agents are while `vite` serves the page itself. */
const agents = process.env.PERDURE_URL ?? "http://127.0.0.1:8787";

// oxlint-disable-next-line import/no-default-export -- what vite looks for
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  /** `perdure/react` means `src`, so that the package need not be built first. */
  resolve: { conditions: ["perdure-source", ...defaultClientConditions] },
  build: {
    outDir: "dist",
    emptyOutDir: true,
    // One file is right for a page that needs all of it at once; `npm start` should not warn about that.
    chunkSizeWarningLimit: 1000,
    // Long enough that every hash is seen to be one, and browsers keep the file for good.
    rolldownOptions: {
      output: {
        hashCharacters: "hex",
        entryFileNames: "assets/[name]-[hash:20].js",
        chunkFileNames: "assets/[name]-[hash:20].js",
        assetFileNames: "assets/[name]-[hash:20][extname]",
      },
    },
  },
  server: { proxy: { "/agents": { target: agents, ws: true }, "/info": agents } },
});
