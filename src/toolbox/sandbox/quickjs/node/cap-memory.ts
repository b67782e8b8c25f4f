const HEADER_BYTES = 8;
const MEMORY_SECTION = 5;
const HAS_MAXIMUM = 1;

/**
 * The WebAssembly module with a maximum for its one memory, in pages of 64 KiB. The engine's own limit is a comparison in the
 * engine; this one holds even when the engine is broken.
 * @throws for a module without a memory of its own, or with one that starts above the maximum
 */
export function capMemory(module: Uint8Array, maximumPages: number): Uint8Array<ArrayBuffer> {
  let at = HEADER_BYTES;
  while (at < module.length) {
    const id = module[at];
    const size = readNumber(module, at + 1);
    const end = size.next + size.value;
    if (id === MEMORY_SECTION) {
      const count = readNumber(module, size.next);
      const initial = readNumber(module, count.next + 1);
      if (count.value !== 1 || (module[count.next] ?? 0) > HAS_MAXIMUM) throw new Error("Not one plain memory.");
      if (initial.value > maximumPages) throw new Error(`The engine starts with ${initial.value} pages of memory.`);
      const body = [1, HAS_MAXIMUM, ...writeNumber(initial.value), ...writeNumber(maximumPages)];
      const section = [MEMORY_SECTION, ...writeNumber(body.length), ...body];
      const capped = new Uint8Array(at + section.length + module.length - end);
      capped.set(module.subarray(0, at));
      capped.set(section, at);
      capped.set(module.subarray(end), at + section.length);
      return capped;
    }
    at = end;
  }
  throw new Error("The engine has no memory of its own.");
}

function readNumber(bytes: Uint8Array, from: number): { value: number; next: number } {
  let value = 0;
  for (let index = 0; index < 5; index++) {
    const byte = bytes[from + index];
    if (byte === undefined) break;
    value += (byte & 0x7f) * 2 ** (7 * index);
    if (byte < 0x80) return { value, next: from + index + 1 };
  }
  throw new Error("Not a WebAssembly module.");
}

function writeNumber(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  do {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    bytes.push(rest > 0 ? low + 128 : low);
  } while (rest > 0);
  return bytes;
}
