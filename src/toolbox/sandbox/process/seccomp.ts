import { absentCalls, judgedCalls, namespaceCalls, refusedCalls, uncountedMemoryCalls } from "./system-calls.ts";

/** The processors for which a filter can be built. */
export type Processor = "x64" | "arm64";

/** What a filter lets through beyond the least. */
export interface FilterOptions {
  /** Namespaces of its own: only for a browser, which builds its sandbox of them. */
  readonly namespaces?: boolean;
  /** Memory that no process is charged for: only where a cgroup counts it, or for a browser. */
  readonly uncountedMemory?: boolean;
}

// Fields of what the kernel shows to a filter (struct seccomp_data).
const CALL = 0;
const ARCHITECTURE = 4;
const FIRST_ARGUMENT = 16;
const SECOND_ARGUMENT = 24;

// Instructions of classic BPF.
const LOAD_WORD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const JUMP_ANY_BIT = 0x45;
const RETURN = 0x06;

// Answers.
const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const FAIL_WITH = 0x00050000;
const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

const architectures: Readonly<Record<Processor, number>> = { x64: 0xc000003e, arm64: 0xc00000b7 };
/** On x64 the same calls can be reached once more from this number on. */
const X32_CALLS = 0x40000000;
/** Every namespace that `clone` can make. */
const NAMESPACE_FLAGS = 0x7e020000;
const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
/** They put characters into a terminal, as if somebody had typed them. */
const TERMINAL_REQUESTS = [0x5412, 0x541c];

/** An instruction; jumps are how many instructions to leave out. */
type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

const load = (offset: number): Instruction => [LOAD_WORD, 0, 0, offset];
const answer = (value: number): Instruction => [RETURN, 0, 0, value];
const failWith = (error: number): Instruction => answer(FAIL_WITH | error);

/** What a jail's processes may ask of the kernel, as the program that `bwrap --seccomp` reads. */
export function buildSeccompFilter(processor: Processor, options: FilterOptions = {}): Uint8Array {
  const column = processor === "x64" ? 0 : 1;
  const numbers = (table: Readonly<Record<string, readonly [number, number | undefined]>>): number[] =>
    Object.values(table).flatMap((pair) => pair[column] ?? []);
  const refused = [
    ...numbers(refusedCalls),
    ...(options.namespaces === true ? [] : numbers(namespaceCalls)),
    ...(options.uncountedMemory === true ? [] : numbers(uncountedMemoryCalls)),
  ];
  const { clone, socket, socketpair, ioctl } = judgedCalls;
  return encode([
    load(ARCHITECTURE),
    // Another architecture has other numbers: there this list would mean something else.
    [JUMP_EQUAL, 1, 0, architectures[processor]],
    answer(KILL),
    load(CALL),
    ...(processor === "x64" ? ([[JUMP_AT_LEAST, 0, 1, X32_CALLS], failWith(ENOSYS)] as const) : []),
    ...refused.flatMap((number) => [[JUMP_EQUAL, 0, 1, number] as const, failWith(EPERM)]),
    ...numbers(absentCalls).flatMap((number) => [[JUMP_EQUAL, 0, 1, number] as const, failWith(ENOSYS)]),
    ...(options.namespaces === true
      ? []
      : judge(clone[column], FIRST_ARGUMENT, [[JUMP_ANY_BIT, 0, 1, NAMESPACE_FLAGS], failWith(EPERM)])),
    ...judge(socket[column], FIRST_ARGUMENT, [
      [JUMP_EQUAL, 3, 0, AF_UNIX],
      [JUMP_EQUAL, 2, 0, AF_INET],
      [JUMP_EQUAL, 1, 0, AF_INET6],
      failWith(EAFNOSUPPORT),
    ]),
    ...judge(socketpair[column], FIRST_ARGUMENT, [[JUMP_EQUAL, 1, 0, AF_UNIX], failWith(EAFNOSUPPORT)]),
    ...judge(
      ioctl[column],
      SECOND_ARGUMENT,
      TERMINAL_REQUESTS.flatMap((request) => [[JUMP_EQUAL, 0, 1, request] as const, failWith(EPERM)]),
    ),
    answer(ALLOW),
  ]);
}

/** For one call: looks at an argument, and allows it when no rule has answered. */
function judge(number: number, argument: number, rules: readonly Instruction[]): readonly Instruction[] {
  return [[JUMP_EQUAL, 0, rules.length + 2, number], load(argument), ...rules, answer(ALLOW)];
}

function encode(program: readonly Instruction[]): Uint8Array {
  const bytes = new Uint8Array(program.length * 8);
  const view = new DataView(bytes.buffer);
  program.forEach(([code, ifTrue, ifFalse, value], index) => {
    view.setUint16(index * 8, code, true);
    view.setUint8(index * 8 + 2, ifTrue);
    view.setUint8(index * 8 + 3, ifFalse);
    view.setUint32(index * 8 + 4, value >>> 0, true);
  });
  return bytes;
}
