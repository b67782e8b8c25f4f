import { createCollection } from "@tanstack/db";
import { AgentClient as PublicClient } from "agents/client";
import type { useAgent as usePublicAgent } from "agents/react";
import { Agent } from "perdure";
import type { AppliedRowChange, CollectionRules, RowOutcome, RowSource } from "perdure";
import { AgentClient } from "perdure/client";
import { openAgentLog, perdureCollectionOptions, rowsOf } from "perdure/collections";
import type { RowLog } from "perdure/collections";
import type { useAgent } from "perdure/react";
import { expectTypeOf } from "vitest";
import { z } from "zod";

const Note = z.object({ id: z.string(), text: z.string().default(""), place: z.number().optional() });
type Note = z.infer<typeof Note>;

export class Room extends Agent {
  override getCollections() {
    return {
      notes: {
        schema: Note,
        getKey: (row: Note) => row.id,
        readable: ({ id }) => id !== "",
        writable: (_connection, changes) => changes.every(({ operation }) => operation !== "delete"),
      },
    } satisfies Record<string, CollectionRules>;
  }
  override onCollectionChange(changes: readonly AppliedRowChange[], source: RowSource): void {
    expectTypeOf(changes[0]!.operation).toEqualTypeOf<"insert" | "update" | "delete">();
    if (source !== "server") source.send("thanks");
  }
  work(): void {
    const notes = this.collection<Note>("notes");
    expectTypeOf(notes.get("a")).toEqualTypeOf<Note | undefined>();
    expectTypeOf(notes.list({ limit: 3 })).toEqualTypeOf<Note[]>();
    notes.insert({ id: "a", text: "" });
    notes.update("a", (draft) => void (draft.text = "b"));
    // @ts-expect-error: a row is what the collection holds.
    notes.insert({ id: "a", text: 1 });
    const outcome = this.writeRows({ changes: [{ table: "notes", key: "a", operation: "delete" }] });
    expectTypeOf(outcome).toEqualTypeOf<RowOutcome>();
  }
}

// Every client that there is will do.
declare const hook: ReturnType<typeof usePublicAgent>;
declare const ownHook: ReturnType<typeof useAgent>;
expectTypeOf(openAgentLog({ agent: new PublicClient({ agent: "Room", host: "x" }) })).toEqualTypeOf<RowLog>();
openAgentLog({ agent: new AgentClient<Room>({ agent: "Room", host: "x" }), collections: "all" });
openAgentLog({ agent: hook, collections: ["notes"] });
openAgentLog({ agent: ownHook });
// @ts-expect-error: a URL is no connection.
openAgentLog({ agent: "ws://x" });

const notes = createCollection(
  perdureCollectionOptions({ agent: hook, name: "notes", schema: Note, getKey: (row) => row.id, orderAs: "place" }),
);
expectTypeOf(rowsOf(notes).all()).toEqualTypeOf<Note[]>();
notes.insert({ id: "a" });

const tags = createCollection(
  perdureCollectionOptions<{ id: string }>({
    ...{ agent: ownHook, name: "tags", producer: { id: "runner", epoch: 1 } },
    getKey: (row) => row.id,
  }),
);
expectTypeOf(rowsOf(tags).get("a")).toEqualTypeOf<{ id: string } | undefined>();
