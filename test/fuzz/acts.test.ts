import { expect, onTestFinished, test } from "vitest";
import { ACTS } from "../../src/door/authorize.ts";
import { seeded } from "../support/seeded.ts";
import { reached } from "./agents.ts";
import { FRAMES, SESSION_OPS } from "./frames.ts";
import { ROUTES } from "./routes.ts";
import { Target } from "./run.ts";

/** Nobody is asked about what does nothing; and only an agent that signs in at an MCP server has the other. */
const ELSEWHERE = ["malformed", "mcp.signIn"];

test("frames and requests are made for every act that somebody outside can ask for", async () => {
  const target = new Target();
  onTestFinished(() => target.close());
  await target.open();
  const random = seeded(1);
  for (const path of ["/agents/plain/a", "/agents/plain/a/sub/leaf/x", "/agents/talk/a"]) {
    const [wire] = target.wiresOf(path);
    if (wire === undefined) throw new Error(path);
    for (let round = 0; round < 3; round++) {
      const known = target.known(wire);
      for (const make of Object.values(FRAMES)) await target.send(wire, JSON.stringify(make(random, known)));
      for (const make of Object.values(SESSION_OPS))
        await target.send(wire, JSON.stringify({ type: "perdure_session", id: known.fresh(), ...make(random, known) }));
      await target.send(wire, "for the app");
      for (const make of Object.values(ROUTES)) {
        const { method, rest, path: own, body, headers } = make(random, known);
        const sent = body === undefined || method === "GET" || method === "HEAD" ? {} : { body: JSON.stringify(body) };
        await target.request({ method, path: own ?? path + (rest ?? ""), ...(headers && { headers }), ...sent });
      }
      await target.settle(true);
    }
  }
  await target.check();
  expect(Object.keys(ACTS).filter((act) => !reached.has(act as keyof typeof ACTS))).toEqual(ELSEWHERE);
});
