// Rows that say who wrote them: the name is the identity that the app established, never what a client calls itself.
import { createCollection } from "@tanstack/db";
import { Agent, type Collections } from "perdure";
import { type ApprovalEvent, createApprovals, logCollectionOptions } from "perdure/collections";
import { expect, onTestFinished, test } from "vitest";
import { eventually, openHost } from "../../host/open-host.ts";
import { followed, insert, ownClient } from "./room.ts";

class Desk extends Agent {
  override getCollections(): Collections {
    return { approvals: { author: "actorId" } };
  }
  write(id: string, actorId: string): void {
    this.collection("approvals").insert({ id, actorId });
  }
  rows(): unknown[] {
    return this.collection("approvals").list();
  }
}

async function open() {
  const host = await openHost({
    agents: { Desk },
    onBeforeConnect: (request) => {
      const id = new URL(request.url).searchParams.get("user");
      return id === null ? undefined : { identity: { id } };
    },
  });
  const log = (query: Record<string, string>) => followed(ownClient(host, { agent: "Desk", query }), "approvals");
  return { stub: host.getAgentByName(Desk, "default"), log };
}

test("a client approves under the identity that the app has given it, and under no other", async () => {
  const { log, stub } = await open();
  const device = await log({ user: "ann" });
  const events = createCollection(
    logCollectionOptions<ApprovalEvent>({ log: device, name: "approvals", getKey: (row) => row.id, orderAs: "seq" }),
  );
  const approvals = createApprovals({ events });
  onTestFinished(() => approvals.dispose());
  await approvals.ready;
  await approvals.request("call-1", { actorId: "ann" });
  await expect(approvals.approve("call-1", { actorId: "bob" })).rejects.toMatchObject({ code: "not_allowed" });
  expect(await approvals.approve("call-1", { actorId: "ann" })).toBe("approved");
  await eventually(async () => expect(await stub.rows()).toHaveLength(2));
});

test.each<[string, Record<string, string>, object]>([
  ["in another's name", { user: "ann" }, { actorId: "bob" }],
  ["without a name", { user: "ann" }, {}],
  ["in a name that is no text", { user: "1" }, { actorId: 1 }],
  ["in any name while it is nobody", {}, { actorId: "ann" }],
  ["without a name while it is nobody", {}, {}],
])("a client that writes %s writes nothing", async (_what, query, row) => {
  const { log, stub } = await open();
  const client = await log(query);
  await expect(client.write({ changes: [insert("approvals", "r", row)] })).rejects.toMatchObject({
    code: "not_allowed",
  });
  expect(await stub.rows()).toEqual([]);
});

test.each(["update", "upsert", "delete"] as const)("the row of another is not changed: %s", async (operation) => {
  const { log, stub } = await open();
  await stub.write("r", "bob");
  const ann = await log({ user: "ann" });
  const bob = await log({ user: "bob" });
  const change = (actorId: string) => ({
    ...{ table: "approvals", key: "r", operation },
    ...(operation !== "delete" && { value: { id: "r", actorId, said: "yes" } }),
  });
  for (const name of ["ann", "bob"])
    await expect(ann.write({ changes: [change(name)] })).rejects.toMatchObject({ code: "not_allowed" });
  expect(await stub.rows()).toEqual([{ id: "r", actorId: "bob" }]);
  await bob.write({ changes: [change("bob")] });
  expect(await stub.rows()).not.toEqual([{ id: "r", actorId: "bob" }]);
});
