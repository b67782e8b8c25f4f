import { describe, expect, test } from "vitest";
import { buildSeccompFilter, type FilterOptions, type Processor } from "./seccomp.ts";

interface Call {
  readonly number: number;
  readonly first?: number;
  readonly second?: number;
  readonly architecture?: number;
}

const ARCHITECTURES: Record<Processor, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** What the kernel does with a filter: runs it over one call. */
function judge(processor: Processor, call: Call, options?: FilterOptions): string {
  const view = new DataView(buildSeccompFilter(processor, options).buffer);
  const data = new Map([
    [0, call.number],
    [4, call.architecture ?? ARCHITECTURES[processor]],
    [16, call.first ?? 0],
    [24, call.second ?? 0],
  ]);
  let held = 0;
  for (let at = 0; at < view.byteLength / 8; at += 1) {
    const [code, yes, no] = [view.getUint16(at * 8, true), view.getUint8(at * 8 + 2), view.getUint8(at * 8 + 3)];
    const value = view.getUint32(at * 8 + 4, true);
    if (code === 0x20) held = data.get(value) ?? Number.NaN;
    else if (code === 0x15) at += held === value ? yes : no;
    else if (code === 0x35) at += held >= value ? yes : no;
    else if (code === 0x45) at += (held & value) !== 0 ? yes : no;
    else if (code === 0x06) return value === 0x7fff0000 ? "allow" : value === 0x80000000 ? "kill" : `${value & 0xffff}`;
    else throw new Error(`instruction ${code}`);
  }
  throw new Error("fell off the end");
}

const EPERM = "1";
const ENOSYS = "38";
const EAFNOSUPPORT = "97";

describe.each(["x64", "arm64"] as const)("the filter for %s", (processor) => {
  const column = processor === "x64" ? 0 : 1;
  const numbers = {
    read: [0, 63],
    execve: [59, 221],
    ptrace: [101, 117],
    mount: [165, 40],
    unshare: [272, 97],
    chroot: [161, 51],
    setns: [308, 268],
    bpf: [321, 280],
    keyctl: [250, 219],
    openByHandle: [304, 265],
    memfd: [319, 279],
    ioUring: [425, 425],
    clone3: [435, 435],
    clone: [56, 220],
    socket: [41, 198],
    socketpair: [53, 199],
    ioctl: [16, 29],
  } as const;
  const number = (name: keyof typeof numbers) => numbers[name][column];

  test("lets ordinary calls through and refuses the others", () => {
    for (const name of ["read", "execve"] as const) expect(judge(processor, { number: number(name) })).toBe("allow");
    const refused = [
      "ptrace",
      "mount",
      "unshare",
      "chroot",
      "setns",
      "bpf",
      "keyctl",
      "openByHandle",
      "memfd",
    ] as const;
    for (const name of refused) expect([name, judge(processor, { number: number(name) })]).toEqual([name, EPERM]);
    for (const name of ["ioUring", "clone3"] as const) expect(judge(processor, { number: number(name) })).toBe(ENOSYS);
  });

  test("kills what calls by the numbers of another processor", () => {
    const other = processor === "x64" ? ARCHITECTURES.arm64 : ARCHITECTURES.x64;
    expect(judge(processor, { number: number("read"), architecture: other })).toBe("kill");
    // 32-bit programs on x64.
    expect(judge(processor, { number: number("read"), architecture: 0x40000003 })).toBe("kill");
  });

  test("looks at arguments: namespaces, kinds of sockets, typing into a terminal", () => {
    const clone = (first: number) => judge(processor, { number: number("clone"), first });
    expect(clone(0x01200011)).toBe("allow");
    expect(clone(0x003d0f00)).toBe("allow");
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      expect(clone(flag | 17)).toBe(EPERM);
    }
    const socket = (first: number) => judge(processor, { number: number("socket"), first });
    for (const family of [1, 2, 10]) expect(socket(family)).toBe("allow");
    for (const family of [0, 3, 16, 17, 29, 31, 38, 40, 44]) expect(socket(family)).toBe(EAFNOSUPPORT);
    expect(judge(processor, { number: number("socketpair"), first: 1 })).toBe("allow");
    expect(judge(processor, { number: number("socketpair"), first: 2 })).toBe(EAFNOSUPPORT);
    const ioctl = (second: number) => judge(processor, { number: number("ioctl"), second });
    expect([ioctl(0x5413), ioctl(0x5412), ioctl(0x541c)]).toEqual(["allow", EPERM, EPERM]);
  });

  test("a browser may build its own sandbox, and no more", () => {
    const options = { namespaces: true, uncountedMemory: true };
    for (const name of ["unshare", "chroot", "memfd"] as const) {
      expect(judge(processor, { number: number(name) }, options)).toBe("allow");
    }
    expect(judge(processor, { number: number("clone"), first: 0x10000011 }, options)).toBe("allow");
    for (const name of ["ptrace", "mount", "bpf", "setns"] as const) {
      expect(judge(processor, { number: number(name) }, options)).toBe(EPERM);
    }
    expect(judge(processor, { number: number("socket"), first: 17 }, options)).toBe(EAFNOSUPPORT);
  });
});

test("on x64 the second door to the same calls is shut", () => {
  expect(judge("x64", { number: 0x40000000 + 101 })).toBe(ENOSYS);
});
