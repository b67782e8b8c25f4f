import { AgentClient } from "agents/client";
import { crashMatrix } from "perdure/testing";
import type { CrashMatrixOptions, CrashOutcome, Program } from "perdure/testing";
import { expect, test } from "vitest";
import {
  ackedIn,
  allFacts,
  env,
  every,
  expectCovered,
  expectNoFailure,
  MATRIX_MS,
  ofType,
  untilIdle,
} from "./drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";

interface Count {
  readonly n: number;
}
interface Result extends Count {
  readonly lines: readonly string[];
  /** What a new client is greeted with. */
  readonly greeted: Count | undefined;
}

/** A public client. All that it sees is noted as a fact; it goes when the program does. */
async function connect(child: Program, who: string): Promise<AgentClient<unknown, Count>> {
  const { port } = await child.waitFor("listening");
  const client = new AgentClient<unknown, Count>({
    agent: "Board",
    name: "one",
    host: `127.0.0.1:${String(port)}`,
    onStateUpdate: ({ n }, source) => child.note({ type: "state", who, n, source }),
  });
  void child.exited.then(() => client.close());
  await client.ready;
  return client;
}

async function drive(child: Program): Promise<void> {
  const actor = await connect(child, "actor");
  const watcher = await connect(child, "watcher");
  const call = async (method: string, arg: string | number): Promise<void> => {
    child.note({ type: "acked", id: `${method} ${arg}`, value: await actor.call(method, [arg]) });
  };
  await call("set", 1);
  await call("write", "first");
  await call("later", "queued");
  actor.setState({ n: 2 });
  await child.waitFor((fact) => fact.type === "state" && fact.who === "watcher" && fact.n === 2);
  const onChunk = (text: unknown) => child.note({ type: "chunk", text });
  await actor.call("several", [["a", "b", "c"]], { stream: { onChunk } });
  await call("set", 3);
  await child.waitFor((fact) => fact.type === "state" && fact.who === "watcher" && fact.n === 3);
  actor.close();
  watcher.close();
}

const scenario: Omit<CrashMatrixOptions<Result>, "again" | "points"> = {
  program: await bundleProgram(new URL("./socket-program.ts", import.meta.url)),
  env,
  drive,
  async finish(child) {
    await untilIdle(child);
    const client = await connect(child, "late");
    const greeted = client.state;
    const { n, lines } = await client.call<Omit<Result, "greeted">>("read");
    client.close();
    return { n, lines, greeted };
  },
  check,
};

function check(outcome: CrashOutcome<Result>): void {
  expectNoFailure(outcome);
  const { n, lines, greeted } = outcome.after.result;
  const { facts } = outcome.before;
  const told = ackedIn(facts);
  // The states are numbered in the order in which they were set.
  for (const state of ofType(facts, "state")) {
    if (state.source === "server") expect(n, `seen by ${String(state.who)}`).toBeGreaterThanOrEqual(Number(state.n));
  }
  for (const value of [1, 3]) if (told.has(`set ${value}`)) expect(n).toBeGreaterThanOrEqual(value);
  expect(greeted).toEqual({ n });
  const written = ["first", ...ofType(facts, "chunk").map(({ text }) => text)];
  for (const text of written) if (text !== "first" || told.has("write first")) expect(lines).toContain(text);
  if (told.has("later queued")) expect(lines).toContain("queued");
  expect(lines, "once each").toEqual([...new Set(lines)]);
  const chunks = lines.filter((text) => ["a", "b", "c"].includes(text));
  expect(chunks).toEqual(["a", "b", "c"].slice(0, chunks.length));
  expect(ofType(allFacts(outcome), "ran").length).toBeLessThanOrEqual(1);
}

test(
  "clients on sockets, killed after every commit: every answer and every frame that they saw still holds",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix(scenario);
    expectCovered(matrix, 12);
    expect(matrix.reference.result).toEqual({ n: 3, lines: ["first", "queued", "a", "b", "c"], greeted: { n: 3 } });
  },
);

test("clients on sockets, killed again in the next life", { timeout: MATRIX_MS }, async () => {
  const { killed } = await crashMatrix({ ...scenario, again: [1], points: every(4, 2) });
  expect(killed).not.toEqual([]);
});
