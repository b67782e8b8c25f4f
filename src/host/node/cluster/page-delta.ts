import zlib from "node:zlib";

const WAL_HEADER = 32;
const FRAME_HEADER = 24;
/** In the header of a frame: which page it is, and the size of the database if a commit ends here. */
const AT_PAGE = 0;
const AT_COMMIT = 4;
const HEAD = 12;

/** What some commits changed: the newest image of each page, and how many pages the database has after them. */
interface PageDelta {
  readonly pageBytes: number;
  readonly count: number;
  readonly pages: ReadonlyMap<number, Buffer>;
}

/**
 * Reads what is committed in a part of SQLite's log. Frames behind the last commit mark belong to a transaction that is open, or
 * was undone.
 * @param bytes the log from `from` on. @returns also where the last commit ends; undefined when there is none
 */
export function readLog(
  bytes: Buffer,
  from: number,
  pageBytes: number,
): { readonly delta: PageDelta; readonly end: number } | undefined {
  const frame = FRAME_HEADER + pageBytes;
  const first = from === 0 ? WAL_HEADER : 0;
  let last = -1;
  let count = 0;
  for (let at = first; at + frame <= bytes.length; at += frame) {
    const size = bytes.readUInt32BE(at + AT_COMMIT);
    if (size === 0) continue;
    last = at;
    count = size;
  }
  if (last === -1) return undefined;
  const pages = new Map<number, Buffer>();
  for (let at = first; at <= last; at += frame) {
    const page = bytes.readUInt32BE(at + AT_PAGE);
    // A database that shrank has no such page any more.
    if (page <= count) pages.set(page, bytes.subarray(at + FRAME_HEADER, at + frame));
  }
  return { delta: { pageBytes, count, pages }, end: from + last + frame };
}

/** As bytes, packed. */
export function packDelta({ pageBytes, count, pages }: PageDelta): Buffer {
  const head = Buffer.alloc(HEAD + 4 * pages.size);
  head.writeUInt32LE(pageBytes, 0);
  head.writeUInt32LE(count, 4);
  head.writeUInt32LE(pages.size, 8);
  let at = HEAD;
  for (const page of pages.keys()) at = head.writeUInt32LE(page, at);
  return zlib.zstdCompressSync(Buffer.concat([head, ...pages.values()]), { params: FAST });
}

const FAST = { [zlib.constants.ZSTD_c_compressionLevel]: 1 };

/** Packs a part of a base, off the event loop. */
export function packBytes(bytes: Uint8Array): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    zlib.zstdCompress(bytes, { params: FAST }, (error, packed) => (error ? reject(error) : resolve(packed)));
  });
}

/** What {@link packBytes} packed. */
export function unpackBytes(packed: Uint8Array): Buffer {
  return zlib.zstdDecompressSync(packed);
}

function unpackDelta(packed: Uint8Array): PageDelta {
  const bytes = zlib.zstdDecompressSync(packed);
  const [pageBytes, count, size] = [bytes.readUInt32LE(0), bytes.readUInt32LE(4), bytes.readUInt32LE(8)];
  const pages = new Map<number, Buffer>();
  const images = HEAD + 4 * size;
  for (let i = 0; i < size; i++) {
    const image = bytes.subarray(images + i * pageBytes, images + (i + 1) * pageBytes);
    pages.set(bytes.readUInt32LE(HEAD + 4 * i), image);
  }
  return { pageBytes, count, pages };
}

/** The file that a base is after all deltas, oldest first. Each page is written once, whatever the number of deltas. */
export function applyDeltas(base: Uint8Array, deltas: readonly Uint8Array[]): Buffer {
  let file: Buffer | undefined;
  let pagesLeft = 0;
  const done = new Set<number>();
  for (const packed of deltas.toReversed()) {
    const { pageBytes, count, pages } = unpackDelta(packed);
    if (file === undefined) {
      pagesLeft = count;
      file = Buffer.alloc(count * pageBytes);
      file.set(base.subarray(0, file.length));
    }
    for (const [page, image] of pages) {
      if (page > pagesLeft || done.has(page)) continue;
      done.add(page);
      image.copy(file, (page - 1) * pageBytes);
    }
  }
  return file ?? Buffer.from(base);
}
