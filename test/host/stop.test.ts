import { Agent } from "perdure";
import { killPrograms, startProgram } from "perdure/testing";
import type { Program } from "perdure/testing";
import { afterEach, expect, test } from "vitest";
import { bundleProgram } from "../support/bundle-program.ts";
import { connect, eventually, openHost, quiet, tempDir } from "./open-host.ts";

const file = await bundleProgram(new URL("./stop-program.ts", import.meta.url));

afterEach(killPrograms);

async function start(dir: string, env?: Record<string, string>): Promise<{ program: Program; url: string }> {
  const program = startProgram(file, { dir, env });
  const { url } = await program.waitFor("listening");
  return { program, url: String(url) };
}

function signal({ pid }: Program, name: "SIGTERM" | "SIGINT"): void {
  if (pid === undefined) throw new Error("The program never started.");
  process.kill(pid, name);
}

const types = (program: Program) => program.facts.map(({ type }) => type);

test.each(["SIGTERM", "SIGINT"] as const)(
  "%s with nothing to do: sockets are closed with 1012, and the exit code is 0",
  async (name) => {
    const { program, url } = await start(tempDir());
    const client = await connect({ url }, "/agents/worker/a");
    expect(await client.call("hello")).toBe("hello");
    signal(program, name);
    expect(await client.whenClosed()).toEqual({ code: 1012, reason: "host restarts" });
    expect(await program.exited).toEqual({ code: 0, signal: null });
    expect(types(program)).toContain("closed");
    expect(program.output).toBe("");
  },
);

test("SIGTERM while a callback runs: the port says 503 until it has settled, and what it left behind is carried on", async () => {
  const dir = tempDir();
  const { program, url } = await start(dir);
  const client = await connect({ url }, "/agents/worker/a");
  expect((await fetch(`${url}/health`)).status).toBe(200);
  await client.call("begin", "slow");
  await program.waitFor("slow:began");
  signal(program, "SIGTERM");
  expect((await client.whenClosed()).code).toBe(1012);
  const health = await fetch(`${url}/health`);
  expect([health.status, await health.json()]).toMatchObject([503, { ok: false }]);
  await expect(connect({ url }, "/agents/worker/a")).rejects.toThrow("503");
  expect((await fetch(`${url}/agents/worker/b`)).status).toBe(503);
  await program.send("finish");
  expect(await program.exited).toEqual({ code: 0, signal: null });
  await expect(fetch(`${url}/health`)).rejects.toThrow();
  expect(types(program)).toContain("slow:ended");

  // Nobody connects: the fiber and the queued call were accepted while the host was stopping.
  const next = await start(dir);
  await next.program.waitFor("fiber:ran");
  await next.program.waitFor("queued:ran");
  const again = await connect(next, "/agents/worker/a");
  expect(again.states()).toEqual([{ done: 1 }]);
  expect(types(next.program)).not.toContain("slow:began");
});

test("a recurring schedule whose run settles while the host stops rings again after the restart", async () => {
  const dir = tempDir();
  const { program, url } = await start(dir);
  const client = await connect({ url }, "/agents/worker/a");
  await client.call("every");
  await program.waitFor("slow:began");
  signal(program, "SIGTERM");
  await client.whenClosed();
  await program.send("finish");
  expect((await program.exited).code).toBe(0);
  const next = await start(dir);
  expect(await next.program.waitFor("slow:began")).toMatchObject({ attempt: 1 });
});

test("a callback that does not settle in the grace is cut, the exit code is 0, and the next start carries it on", async () => {
  const dir = tempDir();
  const { program, url } = await start(dir, { GRACE_MS: "200" });
  const client = await connect({ url }, "/agents/worker/a");
  await client.call("begin", "stuck");
  await program.waitFor("stuck:began");
  signal(program, "SIGTERM");
  expect((await client.whenClosed()).code).toBe(1012);
  expect(await program.exited).toEqual({ code: 0, signal: null });
  expect(types(program)).not.toContain("stuck:ended");

  const next = await start(dir);
  expect(await next.program.waitFor("stuck:began")).toMatchObject({ attempt: 2 });
  await next.program.waitFor("stuck:ended");
});

test("a second signal ends the process at once, and nothing that was stored is lost", async () => {
  const dir = tempDir();
  const { program, url } = await start(dir);
  const client = await connect({ url }, "/agents/worker/a");
  await client.call("begin", "stuck");
  await program.waitFor("stuck:began");
  signal(program, "SIGTERM");
  await client.whenClosed();
  signal(program, "SIGTERM");
  expect(await program.exited).toEqual({ code: 1, signal: null });
  const next = await start(dir);
  expect(await next.program.waitFor("stuck:began")).toMatchObject({ attempt: 2 });
});

test("while it stops, a host refuses new work in process and says that it is not well", async () => {
  let open: (() => void) | undefined;
  class Busy extends Agent {
    async wait(): Promise<string> {
      await new Promise<void>((resolve) => (open = resolve));
      return "settled";
    }
    hello(): void {}
  }
  const host = await openHost({ agents: { Busy } });
  expect(host.status().ok).toBe(true);
  const waiting = host.getAgentByName(Busy, "a").wait();
  await eventually(() => open, "the call runs");
  const stopped = host.stop();
  expect(host.stop()).toBeInstanceOf(Promise);
  expect(host.status().ok).toBe(false);
  await expect(host.getAgentByName(Busy, "a").hello()).rejects.toMatchObject({ code: "host_stopped" });
  expect((await host.fetch(new Request("http://host/agents/busy/a"))).status).toBe(503);
  open?.();
  expect(await waiting).toBe("settled");
  await stopped;
});

test("after a stop nothing of the host lives on: a client that leaves late wakes no agent", async () => {
  let made = 0;
  class Door extends Agent {
    override onStart(): void {
      made++;
    }
    override onClose(): void {}
  }
  const dir = tempDir();
  const host = await openHost({ agents: { Door }, dir, graceMs: 0 });
  for (let i = 0; i < 5; i++) await connect(host, `/agents/door/${i}`);
  await host.stop();
  await quiet(200);
  expect(made).toBe(5);
  expect(host.status()).toEqual({ ok: false, live: 0, kept: 0, connections: 0 });
  // The directory is free and not touched any more.
  const next = await openHost({ agents: { Door }, dir });
  await connect(next, "/agents/door/0");
  expect(made).toBe(6);
});
