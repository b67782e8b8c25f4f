import { type DurableExecutionOptions, park } from "perdure";
import { expect, test } from "vitest";
import { user } from "../chat/client.ts";
import { eventually } from "../host/open-host.ts";
import { serverTool } from "../think/harness.ts";
import { childClass, connectChild, given, heardText, openTogether, runFrames, runsAre } from "../together/harness.ts";
const wait = (ms: number) => new Promise((r) => setTimeout(r, ms));
async function waiting(plain = false) {
  const paid: string[] = [];
  const { Researcher, model, lives } = childClass(
    ({ step, prompt }) => (prompt.at(-1)?.role === "user" && step === 0 ? { text: "I have to pay. ", toolCalls: [{ toolName: "pay", input: { amount: 5 }, toolCallId: "p1" }] } : "Paid for it."),
    { pay: plain ? serverTool(() => { paid.push("plain"); return "paid"; }, { needsApproval: true }) : serverTool((_i, o: DurableExecutionOptions) => {
        const n = o.resumed ? o.resumed.state[0]! : 0;
        if (o.resumed) paid.push(`step ${n}`);
        return n < 2 ? park({ tool: "x", input: { n }, summary: `Q${n}`, state: new Uint8Array([n + 1]) }) : "paid";
      }) },
  );
  const kit = await openTogether(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => runFrames(client).some(({ event }) => event.body?.includes("tool-approval-request")), "q");
  const [run] = await runsAre(kit, "running");
  await eventually(() => lives[0]?.hasPendingInteraction(), "waits");
  return { paid, kit, client, runId: run?.runId ?? "", lives, model };
}
test("a child parks twice; the parent waits", async () => {
  const w = await waiting();
  const child = await connectChild(w.kit, w.runId);
  child.approve("p1", true);
  await eventually(() => w.paid.length === 1, "one");
  await wait(600);
  child.approve("p1", true);
  expect(await w.client.done("r1")).toMatchObject({ outcome: "completed" });
  expect(w.paid).toEqual(["step 1", "step 2"]);
  expect(given(w.kit.model, 1)).toBe("Paid for it.");
  const f = runFrames(w.client);
  expect(f.map(({ sequence }) => sequence)).toEqual(f.map((_, i) => i));
  console.log(heardText(f), JSON.stringify(f.map((x) => (x.event as any).body ?? x.event.kind)).slice(0, 1500));
});
test("the parent is stopped while the child is parked", async () => {
  const w = await waiting();
  w.client.send({ type: "cf_agent_chat_request_cancel", id: "r1" } as never);
  await wait(500);
  const life = w.lives.at(-1)!;
  console.log("STOP", JSON.stringify((life as any).pendingApprovals?.()), (life as any).answerApproval?.("p1", true));
  await wait(400);
  expect(w.paid).toEqual([]);
});
test("restart while the child is parked", async () => {
  const w = await waiting();
  await w.kit.restart();
  const child = await connectChild(w.kit, w.runId);
  child.approve("p1", true);
  await eventually(() => w.paid.length === 1, "one");
  await wait(300);
  await w.kit.restart();
  const child2 = await connectChild(w.kit, w.runId);
  await wait(500);
  child2.approve("p1", true);
  await eventually(() => w.kit.model.calls.length === 2, "parent goes on");
  expect(w.paid).toEqual(["step 1", "step 2"]);
  expect(given(w.kit.model, 1)).toBe("Paid for it.");
});

test("plain: the parent is stopped while the child waits", async () => {
  const w = await waiting(true);
  w.client.send({ type: "cf_agent_chat_request_cancel", id: "r1" } as never);
  await wait(500);
  const life = w.lives.at(-1)!;
  console.log("STOP plain", JSON.stringify((life as any).pendingApprovals?.()), JSON.stringify(life.messages.at(-1)?.parts), JSON.stringify(await w.kit.rows("SELECT status FROM perdure_agent_run")), (life as any).answerApproval?.("p1", true));
  await wait(400);
  expect(w.paid).toEqual([]);
});
