import { type BenchCases, inside, scenario } from "./bench.ts";
import { ensure, same } from "./ensure.ts";

const LARGE = 3 * 1024 * 1024 + 1;
const largeBytes = (): Uint8Array => Uint8Array.from({ length: LARGE }, (_, index) => (index * 7) % 256);
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

export const blobCases: BenchCases = {
  "blobs: what was put comes back, under a name that follows from the bytes": inside(async ({ blobs }) => {
    const name = await blobs.put(encode("one"));
    same(await blobs.get(name), encode("one"), "bytes");
    same(await blobs.put(encode("one")), name, "the name of the same bytes");
    ensure((await blobs.put(encode("two"))) !== name, "other bytes have another name");
    same(await blobs.get(name), encode("one"), "bytes, later");
  }),
  "blobs: empty and large, there after a reopen without more ado": scenario(
    {
      put: async ({ blobs }) => [await blobs.put(new Uint8Array()), await blobs.put(largeBytes())] as const,
      async look({ blobs }, emptyName: string, largeName: string) {
        same(await blobs.get(emptyName), new Uint8Array(), "no bytes");
        const [read, large] = [await blobs.get(largeName), largeBytes()];
        ensure(read !== undefined && read.length === LARGE, "the length of large bytes");
        ensure(
          read.every((byte, index) => byte === large[index]),
          "large bytes are the same",
        );
      },
    },
    async (bench) => {
      const names = await bench.act("a", "put");
      await bench.reopen();
      await bench.act("a", "look", ...names);
    },
  ),
  "blobs: only the window that was put, whatever becomes of the buffer": inside(async ({ blobs }) => {
    const buffer = encode("[inside]");
    const name = await blobs.put(buffer.subarray(1, 7));
    buffer.fill(0);
    same(await blobs.get(name), encode("inside"), "bytes");
    (await blobs.get(name))?.fill(0);
    same(await blobs.get(name), encode("inside"), "bytes after the reader changed its copy");
  }),
  "blobs: deleted and unknown ones are undefined": inside(async ({ blobs }) => {
    const name = await blobs.put(encode("x"));
    await blobs.delete(name);
    same(await blobs.get(name), undefined, "deleted");
    await blobs.delete(name);
    await blobs.put(encode("x"));
    same(await blobs.get(name), encode("x"), "put again");
    const unknown = `${name.slice(0, -1)}${name.endsWith("0") ? "1" : "0"}`;
    same(await blobs.get(unknown), undefined, "unknown");
  }),
  "blobs: many puts of the same bytes at once": inside(async ({ blobs }) => {
    const names = await Promise.all(Array.from({ length: 8 }, () => blobs.put(encode("same"))));
    same(new Set(names).size, 1, "different names");
    same(await blobs.get(names[0] ?? ""), encode("same"), "bytes");
  }),
  "blobs: deleting in one agent leaves another agent's": scenario(
    {
      put: ({ blobs }) => blobs.put(encode("shared")),
      delete: ({ blobs }, name: string) => blobs.delete(name),
      look: async ({ blobs }, name: string) =>
        same(await blobs.get(name), encode("shared"), "bytes of the other agent"),
    },
    async (bench) => {
      const name = await bench.act("a", "put");
      same(await bench.act("b", "put"), name, "the name in another agent");
      await bench.act("a", "delete", name);
      await bench.act("b", "look", name);
    },
  ),
};
