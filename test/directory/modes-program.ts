// Servers of one agents directory, each with its own idea of whether it is watched.
import { join } from "node:path";
import { serve } from "perdure/node";
import { programDir, report } from "perdure/testing";

const modes: Readonly<Record<string, { readonly mode?: string; readonly watch?: boolean }>> = {
  unset: {},
  test: { mode: "test" },
  "test watch": { mode: "test", watch: true },
  production: { mode: "production" },
  "production watch": { mode: "production", watch: true },
  development: { mode: "development" },
  "development still": { mode: "development", watch: false },
};

const urls: Record<string, string> = {};
for (const [name, { mode, watch }] of Object.entries(modes)) {
  if (mode === undefined) delete process.env.NODE_ENV;
  else process.env.NODE_ENV = mode;
  const dir = join(programDir(), `data ${name}`);
  const host = await serve({ agents: join(programDir(), "agents"), dir, port: 0, watch, signals: false });
  urls[name] = `${host.url}/agents/a/one`;
}
// One that has stopped watches no more.
process.env.NODE_ENV = "development";
const stopped = await serve({
  agents: join(programDir(), "agents"),
  dir: join(programDir(), "data stopped"),
  port: 0,
  signals: false,
});
await stopped.stop();
report({ type: "listening", urls });
