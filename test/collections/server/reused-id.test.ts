import { beforeEach, expect, test } from "vitest";
import { connect, openHost, tempDir, type Client } from "../../host/open-host.ts";
import { withDatabase, databaseFile } from "../../host/agent-files.ts";
import { Room } from "./room.ts";

beforeEach(() => {
  Room.heard = [];
});

const change = (text: string) => ({ table: "notes", key: "a", operation: "upsert", value: { id: "a", text } });

/** Writes, and says what the writer was told of it. */
async function write(client: Client, txid: string, text: string): Promise<string> {
  const seen = client.frames.length;
  client.send(JSON.stringify({ type: "perdure_rows_write", txid, changes: [change(text)] }));
  const isAnswer = ({ type, txid: of }: { type?: unknown; txid?: unknown }) =>
    of === txid && (type === "perdure_rows_receipt" || type === "perdure_rows_error");
  const answer = await client.frame((frame) => client.frames.indexOf(frame) >= seen && isAnswer(frame));
  return answer.type === "perdure_rows_receipt" ? `seq ${String(answer.seq)}` : (answer.error as { code: string }).code;
}

test("a transaction id that was used for another write, or by somebody else, is refused; the same write again is acknowledged", async () => {
  const dir = tempDir();
  const onBeforeConnect = (request: Request) => {
    const id = new URL(request.url).searchParams.get("as");
    return id === null ? undefined : { identity: { id } };
  };
  const options = { agents: { Room }, dir, onBeforeConnect };
  let host = await openHost(options);
  const anna = await connect(host, "/agents/room/a?as=anna");
  expect(await write(anna, "t1", "one")).toBe("seq 1");
  expect(await write(anna, "t1", "one")).toBe("seq 1");
  expect(await write(anna, "t1", "another")).toBe("conflict");
  // From another connection of the same person it is the same write; of another person it is not.
  expect(await write(await connect(host, "/agents/room/a?as=anna"), "t1", "one")).toBe("seq 1");
  expect(await write(await connect(host, "/agents/room/a?as=ben"), "t1", "one")).toBe("conflict");
  expect(await write(await connect(host, "/agents/room/a"), "t1", "one")).toBe("conflict");
  expect(await write(anna, "t2", "two")).toBe("seq 2");
  expect(Room.heard).toHaveLength(2);
  await host.stop();
  host = await openHost(options);
  const later = await connect(host, "/agents/room/a?as=anna");
  expect(await write(later, "t1", "one")).toBe("seq 1");
  expect(await write(later, "t1", "other")).toBe("conflict");
});

test("an agent whose rows are from before fingerprints goes on, and knows its old writes by their names alone", async () => {
  const dir = tempDir();
  let host = await openHost({ agents: { Room }, dir });
  expect(await write(await connect(host, "/agents/room/a"), "t1", "one")).toBe("seq 1");
  await host.stop();
  withDatabase(databaseFile(dir, "a"), (db) => {
    db.exec("ALTER TABLE perdure_row_write DROP COLUMN digest; DELETE FROM perdure_cell WHERE key = 'rows:version'");
  });
  host = await openHost({ agents: { Room }, dir });
  const client = await connect(host, "/agents/room/a");
  expect(await write(client, "t1", "one")).toBe("seq 1");
  expect(await write(client, "t2", "two")).toBe("seq 2");
  expect(await write(client, "t2", "three")).toBe("conflict");
});
