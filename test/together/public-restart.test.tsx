import { tmpdir } from "node:os";
import { join } from "node:path";
import { killPrograms, startProgram } from "perdure/testing";
import { expect, test } from "vitest";
import { readyTab } from "../chat-client/harness.tsx";
import { atEnd, eventually, tempDir } from "../clients/harness.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import { openPage, type RunsPage, same } from "./public-page.tsx";

const file = await bundleProgram(new URL("./public-program.ts", import.meta.url));

/** A host in a process of its own. `restart` kills it with SIGKILL and starts it on the same folder and port. */
async function startServer() {
  const dir = tempDir();
  atEnd(() => killPrograms());
  const launch = async (port?: number) => {
    const env = {
      NODE_COMPILE_CACHE: join(tmpdir(), "perdure-crash-modules"),
      ...(port !== undefined && { PORT: String(port) }),
    };
    const program = startProgram(file, { dir, env });
    return { program, port: Number((await program.waitFor("listening")).port) };
  };
  const first = await launch();
  let { program } = first;
  return {
    port: first.port,
    factsOf: (type: string) => program.facts.filter((fact) => fact.type === type),
    waitFor: (type: string) => program.waitFor(type),
    async say(words = 1, children = 1) {
      for (let i = 0; i < words; i++) await program.send(`say ${children}`);
    },
    kill: () => program.kill(),
    async revive() {
      ({ program } = await launch(first.port));
    },
  };
}

const ask = (page: RunsPage, text: string) => void page.chat().sendMessage({ text });
const SEARCHED = '[search output-available ["a","b"]]';
const WHOLE = "one two three four";

test("killed in the middle of a run: the page shows all of it, once, and the tool does not run again", async () => {
  const server = await startServer();
  const page = await openPage(server);
  ask(page, "research steps");
  await server.say(2);
  await page.shows(`running: ${SEARCHED} one two `);
  const { runId } = page.run();
  await eventually(() => expect(server.factsOf("ran")).toHaveLength(1));
  await server.kill();
  await server.revive();
  const late = await openPage(server);
  await late.shows(`running: ${SEARCHED} one two `);
  await server.say(2);
  for (const one of [page, late]) await one.shows(`completed: ${SEARCHED} ${WHOLE}`);
  await page.settles();
  expect(page.list().map((run) => run.runId)).toEqual([runId]);
  await same(late, page);
  expect(page.run().milestones).toHaveLength(1);
  expect(server.factsOf("ran")).toEqual([]);
  await eventually(() => expect(server.factsOf("call")).toHaveLength(1));
  const last = await openPage(server);
  await same(last, page);
});

test("killed at each word, with several runs of one tool call", async () => {
  const server = await startServer();
  const page = await openPage(server);
  ask(page, "team");
  let said = "";
  for (const word of ["one ", "two ", "three "]) {
    await server.say(1, 3);
    said += word;
    const line = `running: ${said}`;
    await page.shows(line, line, line);
    await server.kill();
    await server.revive();
  }
  await server.say(1, 3);
  const line = `completed: ${WHOLE}`;
  await page.shows(line, line, line);
  await page.settles();
  const late = await openPage(server);
  await same(late, page);
});

test("killed while nobody is connected: a run that no tool call started goes on by itself", async () => {
  const server = await startServer();
  const page = await openPage(server);
  await page.call("alone", "tea");
  await server.say(2);
  await page.shows("running: one two ");
  await page.unmount();
  await server.kill();
  await server.revive();
  await server.say(2);
  const late = await openPage(server);
  await late.shows(`completed: ${WHOLE}`);
  expect(late.runs().unboundRuns).toHaveLength(1);
});

test("killed after a run was stopped: it stays stopped, and no model is called", async () => {
  const server = await startServer();
  const page = await openPage(server);
  ask(page, "research tea");
  await server.say(2);
  await page.shows("running: one two ");
  await page.call("stopRun", page.run().runId);
  await page.shows("aborted: one two ");
  await page.settles();
  await server.kill();
  await server.revive();
  const late = await openPage(server);
  await same(late, page);
  expect(server.factsOf("call")).toEqual([]);
});

test("killed while a child asks for approval: it still asks, in its own chat, and the run goes on", async () => {
  const server = await startServer();
  const page = await openPage(server);
  ask(page, "research ask");
  await page.shows("running: [buy approval-requested]");
  await server.kill();
  await server.revive();
  const child = await readyTab(server, { stray: 1, agent: "Parent", sub: [page.run().subAgent] });
  await child.waitFor(({ lines }) => lines[1] === "assistant: [buy approval-requested]");
  const asked = child.chat().messages[1]?.parts.find((part) => "approval" in part);
  if (asked === undefined || !("approval" in asked)) throw new Error("Nothing is asked.");
  void child.chat().addToolApprovalResponse({ id: String(asked.approval?.id), approved: true });
  await server.say(4);
  await page.shows(`completed: [buy output-available "bought"] ${WHOLE}`);
  await eventually(() => expect(server.factsOf("ran")).toHaveLength(1));
  await page.settles();
  await eventually(() => expect(child.lines()[1]).toBe(`assistant: [buy output-available "bought"] ${WHOLE}`));
  const late = await openPage(server);
  await same(late, page);
});
