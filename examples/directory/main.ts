import { serve } from "perdure/node";
import { buildPage } from "../shared/page.ts";

const { url } = await serve({
  agents: new URL("./agents", import.meta.url),
  watch: true,
  dir: ".perdure/directory",
  port: Number(process.env.PORT ?? 8787),
  assets: await buildPage(import.meta.dirname),
});
console.log(`Open ${url}`);
