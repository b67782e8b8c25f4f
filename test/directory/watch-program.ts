// Servers of agents directories that they watch, opened and stopped by command.
import { join } from "node:path";
import { serve, type ServedHost } from "perdure/node";
import { onCommand, report } from "perdure/testing";

const hosts = new Map<string, ServedHost>();

async function open(dir: string): Promise<void> {
  const place = { agents: join(dir, "agents"), dir: join(dir, "data") };
  const host = await serve({ ...place, port: 0, watch: true, signals: false, graceMs: 100 });
  hosts.set(dir, host);
  report({ type: "open", dir, url: host.url });
}

async function stop(dir: string): Promise<void> {
  await hosts.get(dir)?.stop();
  report({ type: "stopped", dir });
}

onCommand((command) => {
  const { what, dir } = command as { what: "open" | "stop"; dir: string };
  void (what === "open" ? open(dir) : stop(dir));
});
report({ type: "ready" });
