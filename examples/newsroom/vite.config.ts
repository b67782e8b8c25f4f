import { defineConfig } from "vite";

// What the bundler says about marks for servers that render React: there is none here.
export default defineConfig({
  build: { chunkSizeWarningLimit: 1000, rolldownOptions: { checks: { moduleLevelDirective: false } } },
});
