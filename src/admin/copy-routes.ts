import { errorText, PerdureError } from "../base/error.ts";
import { schemaVersion } from "../store/migrations.ts";
import { type AdminAsked, type AdminRoute, known, page, pathOf } from "./asked.ts";
import type { AdminHouse, AgentCopies, AgentCopy } from "./house.ts";

/*
 * Whole agents, out and in. Whoever makes a backup asks for these one by one and writes the bytes to where they are: the host
 * writes no file by the word of an operator. Nothing is hidden in them.
 */

/** What operators can ask for to make copies of agents, and to bring them back. */
export const COPY_ROUTES: readonly AdminRoute[] = [
  {
    ...{ method: "POST", shape: "backup", act: "admin.backup" },
    notes: () => "begun",
    answer: ({ house }) => {
      const { version } = house.describe() as { version?: string };
      copiesOf(house);
      return { at: Date.now(), version };
    },
  },
  {
    ...{ method: "GET", shape: "backup", act: "admin.backup" },
    answer: async (asked) => {
      const copies = copiesOf(asked.house);
      // An id is what the copy is called, so it is told as it is.
      return Response.json(await page(asked, (id) => [{ id, version: copies.versionOf(id) }]), { headers: PRIVATE });
    },
  },
  {
    ...{ method: "GET", shape: "backup/host", act: "admin.backup" },
    answer: ({ house }) => new Response(Uint8Array.from(copiesOf(house).host()), { headers: BYTES }),
  },
  {
    ...{ method: "POST", shape: "backup/done", act: "admin.backup" },
    notes: ({ body }) => `${String(body.agents)} agents`,
    answer: ({ house, body: { at } }) => {
      if (typeof at !== "number") throw new PerdureError("bad_input", "The body must have `at`, when it was begun.");
      copiesOf(house).backedUp(at);
      return { changed: true };
    },
  },
  {
    ...{ method: "GET", shape: "agents/{id}/rows", act: "admin.copy" },
    answer: ({ house, params }) => toResponse(copiesOf(house).copy(known(house, params))),
  },
  {
    ...{ method: "GET", shape: "agents/{id}/blobs/{name}", act: "admin.copy" },
    answer: async ({ house, params }) => {
      const bytes = await copiesOf(house).blob(known(house, params), params.name ?? "");
      if (bytes === undefined) throw new PerdureError("not_found", "There is no such file any more.");
      return new Response(bytes, { headers: BYTES });
    },
  },
  {
    ...{ method: "PUT", shape: "agents/{id}/blobs/{name}", act: "admin.adopt", isRaw: true },
    answer: async ({ house, params, request }) => {
      await copiesOf(house).putBlob(pathOf(params), params.name ?? "", bodyOf(request));
      return { changed: true };
    },
  },
  {
    ...{ method: "PUT", shape: "agents/{id}/rows", act: "admin.adopt", isRaw: true },
    notes: ({ query }) => query.get("from"),
    answer: async (asked) => {
      const { house, params, query, request } = asked;
      const id = pathOf(params);
      const number = (name: string) => {
        const text = query.get(name);
        if (text === null || /^\d{1,15}$/.test(text)) return text === null ? null : Number(text);
        throw new PerdureError("bad_input", `\`${name}\` must be a whole number.`);
      };
      const newcomer = { id, from: query.get("from") ?? id, erased: number("erased") };
      const evenDeleted = query.get("deleted") === "true";
      const entry = { awake: query.get("awake") === "true", due: number("due") };
      await copiesOf(house).adopt({ ...newcomer, evenDeleted, ...entry }, bodyOf(request));
      return { changed: true };
    },
  },
  {
    ...{ method: "GET", shape: "migrate", act: "admin.check" },
    answer: (asked) =>
      page(asked, (id) => {
        const found = asked.house.copies?.schemaOf(id);
        return found === undefined || found.schema >= found.newest ? [] : [{ id, ...found }];
      }),
  },
  {
    ...{ method: "POST", shape: "agents/{id}/migrate", act: "admin.migrate" },
    notes: () => null,
    // Whoever opens rows brings them up to date.
    answer: ({ house, params }) => house.look(known(house, params), (rows) => ({ schema: schemaVersion(rows) })),
  },
];

const PRIVATE = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
const BYTES = { ...PRIVATE, "content-type": "application/octet-stream" };

/** @throws PerdureError `bad_state` where nothing is in files */
function copiesOf({ copies }: AdminHouse): AgentCopies {
  if (copies !== undefined) return copies;
  throw new PerdureError("bad_state", "This host keeps its agents in no directory, so there is nothing to copy.");
}

function bodyOf({ body }: AdminAsked["request"]): ReadableStream<Uint8Array> {
  return body ?? new Blob([]).stream();
}

/** A line of JSON that says what follows, then the bytes. It begins at once, as a large copy takes its time. */
function toResponse(copy: Promise<AgentCopy>): Response {
  const encoder = new TextEncoder();
  let bytes: ReadableStreamDefaultReader<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode(" ")),
    async pull(controller) {
      try {
        if (bytes === undefined) {
          const { about, bytes: size, rows } = await copy;
          controller.enqueue(encoder.encode(`${JSON.stringify({ ...about, bytes: size })}\n`));
          bytes = rows.getReader();
          return;
        }
        const { value, done } = await bytes.read();
        if (!done) return controller.enqueue(value);
      } catch (thrown) {
        if (bytes !== undefined) return controller.error(thrown);
        const code = PerdureError.is(thrown) ? thrown.code : "failed";
        controller.enqueue(encoder.encode(`${JSON.stringify({ error: { code, message: errorText(thrown) } })}\n`));
      }
      controller.close();
    },
    cancel: (why) => bytes?.cancel(why),
  });
  // It may fail before anybody reads.
  copy.catch(() => {});
  return new Response(body, { headers: BYTES });
}
