import { createCollection } from "@tanstack/db";
import { durableStreamCollectionOptions, openStreamLog, rowsOf } from "perdure/collections";
import type { RowLog } from "perdure/collections";
import { expectTypeOf } from "vitest";
import { z } from "zod";

const url = "http://127.0.0.1:1/stream";
const Note = z.object({ id: z.string(), text: z.string().default(""), place: z.number().optional() });

const log = openStreamLog({ url, headers: async () => ({ authorization: "x" }), create: false });
expectTypeOf(log).toEqualTypeOf<RowLog>();

// Rows are typed by the schema, or by hand.
const notes = createCollection(
  durableStreamCollectionOptions({ log, name: "notes", schema: Note, getKey: (row) => row.id, orderAs: "place" }),
);
expectTypeOf(rowsOf(notes).all()).toEqualTypeOf<z.infer<typeof Note>[]>();
expectTypeOf(notes.utils.log).toEqualTypeOf<RowLog>();
notes.insert({ id: "a" });

interface Tag {
  id: string;
  name: string;
}
const tags = createCollection(
  durableStreamCollectionOptions<Tag>({
    url: new URL(url),
    name: "tags",
    getKey: (row) => row.id,
    producer: { id: "runner", epoch: 1 },
  }),
);
expectTypeOf(rowsOf(tags).get("a")).toEqualTypeOf<Tag | undefined>();

// @ts-expect-error: a log or a URL, not both.
durableStreamCollectionOptions<Tag>({ log, url, name: "tags", getKey: (row) => row.id });
// @ts-expect-error: one of them.
durableStreamCollectionOptions<Tag>({ name: "tags", getKey: (row) => row.id });
// @ts-expect-error: headers belong to a log of one's own.
durableStreamCollectionOptions<Tag>({ url, headers: {}, name: "tags", getKey: (row) => row.id });
// @ts-expect-error: it is no field of the row.
durableStreamCollectionOptions<Tag>({ url, name: "tags", getKey: (row) => row.id, orderAs: "seq" });
