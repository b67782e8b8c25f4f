import fs from "node:fs";
import { PerdureError } from "../base/error.ts";
import { FILE_MODE } from "../host/node/private-files.ts";

const BLOCK = 512;
const PIECE_BYTES = 1024 * 1024;
/** Octal digits hold no more. */
const MAX_BYTES = 8 * 1024 ** 3 - 1;

/** Writes a tar, in the form that every system reads (ustar). */
export class TarWriter {
  readonly #fd: number;
  #isOpen = true;

  constructor(file: string) {
    this.#fd = fs.openSync(file, "wx", FILE_MODE);
  }

  add(name: string, text: string): void {
    const bytes = Buffer.from(text);
    fs.writeSync(this.#fd, header(name, bytes.byteLength));
    if (bytes.byteLength > 0) fs.writeSync(this.#fd, bytes);
    this.#fill(bytes.byteLength);
  }

  addFile(name: string, file: string): void {
    const { size } = fs.statSync(file);
    fs.writeSync(this.#fd, header(name, size));
    const from = fs.openSync(file, "r");
    try {
      const piece = Buffer.allocUnsafe(PIECE_BYTES);
      for (let got; (got = fs.readSync(from, piece)) > 0;) fs.writeSync(this.#fd, piece, 0, got);
    } finally {
      fs.closeSync(from);
    }
    this.#fill(size);
  }

  end(): void {
    fs.writeSync(this.#fd, Buffer.alloc(2 * BLOCK));
    fs.fsyncSync(this.#fd);
  }

  close(): void {
    if (this.#isOpen) fs.closeSync(this.#fd);
    this.#isOpen = false;
  }

  #fill(size: number): void {
    const rest = (BLOCK - (size % BLOCK)) % BLOCK;
    if (rest > 0) fs.writeSync(this.#fd, Buffer.alloc(rest));
  }
}

function header(name: string, size: number): Buffer {
  if (size > MAX_BYTES) throw new PerdureError("too_large", `${name} is larger than 8 GiB, which a tar cannot hold.`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "latin1");
  block.write(name, 0, "latin1");
  octal(FILE_MODE, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(Math.floor(Date.now() / 1000), 136, 12);
  block.write("0", 156, "latin1");
  block.write("ustar\x0000", 257, "latin1");
  octal(sumOf(block), 148, 7);
  block.write(" ", 155, "latin1");
  return block;
}

/** The sum of a header, counted as if its own place were blank. */
function sumOf(block: Buffer): number {
  return block.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0);
}

/** Where a file of a tar is to go, and what is done when it is there. */
interface Taken {
  readonly into: string;
  readonly done: () => unknown;
}

/** Reads a tar. @param take says what becomes of a file; undefined: it is left out @throws PerdureError `bad_input` */
export function readTar(file: string, take: (name: string) => Taken | undefined): void {
  if (!fs.existsSync(file)) throw new PerdureError("bad_input", `There is no file ${file}.`);
  const fd = fs.openSync(file, "r");
  const bad = () => new PerdureError("bad_input", `${file} is no tar, or it is cut off.`);
  try {
    const block = Buffer.alloc(BLOCK);
    for (let at = 0; ;) {
      if (fs.readSync(fd, block, 0, BLOCK, at) !== BLOCK) throw bad();
      if (block.every((byte) => byte === 0)) return;
      const text = (from: number, length: number) =>
        block.toString("latin1", from, from + length).replace(/[\0 ][\s\S]*$/, "");
      if (parseInt(text(148, 8), 8) !== sumOf(block)) throw bad();
      const size = parseInt(text(124, 12), 8);
      // Less than nothing would lead back to this entry.
      if (!(size >= 0)) throw bad();
      at += BLOCK;
      const taken = text(156, 1) === "0" ? take(text(0, 100)) : undefined;
      if (taken !== undefined) {
        copyOut(fd, at, size, taken.into, bad);
        taken.done();
      }
      at += Math.ceil(size / BLOCK) * BLOCK;
    }
  } finally {
    fs.closeSync(fd);
  }
}

function copyOut(fd: number, from: number, size: number, into: string, bad: () => Error): void {
  const to = fs.openSync(into, "w", FILE_MODE);
  try {
    const piece = Buffer.allocUnsafe(PIECE_BYTES);
    for (let at = 0; at < size;) {
      const got = fs.readSync(fd, piece, 0, Math.min(PIECE_BYTES, size - at), from + at);
      if (got === 0) throw bad();
      fs.writeSync(to, piece, 0, got);
      at += got;
    }
  } finally {
    fs.closeSync(to);
  }
}
