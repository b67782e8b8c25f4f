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
  // One file is right for a page that needs all of it at once; `npm start` should not warn about that.
  build: { outDir: "dist", emptyOutDir: true, chunkSizeWarningLimit: 1000 },
  server: { proxy: { "/agents": { target: agents, ws: true }, "/info": agents } },
});
