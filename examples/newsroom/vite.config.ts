import { defineConfig } from "vite";

// Of what the bundler would say: one file is right for a small page, and no server renders it.
// oxlint-disable-next-line import/no-default-export -- what vite looks for
export default defineConfig({
  build: { chunkSizeWarningLimit: 1000, rolldownOptions: { checks: { moduleLevelDirective: false } } },
});
