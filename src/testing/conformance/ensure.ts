// Assertions without a test runner, so that any host can run the suites wherever it runs.
import type { AgentHost } from "../../port.ts";
import { errorText, PerdureError, type PerdureErrorCode } from "../../base/error.ts";

/** @throws Error with `what` unless `condition` holds */
export function ensure(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(what);
}

/** Compares plain data; bytes by content, also where one host returns a subclass of `Uint8Array`. */
export function same(actual: unknown, expected: unknown, what: string): void {
  const [is, must] = [print(actual), print(expected)];
  ensure(is === must, `${what}: expected ${cut(must)}, got ${cut(is)}`);
}

/** `work` throws a PerdureError with one of `codes` (any, if none is given). Returns it. */
export function refuses(work: () => unknown, what: string, ...codes: PerdureErrorCode[]): PerdureError {
  try {
    work();
  } catch (error) {
    return checkError(error, what, codes);
  }
  throw new Error(`${what}: expected ${codeText(codes)}, but it was accepted`);
}

/** The same for a promise. */
export async function rejects(
  work: Promise<unknown>,
  what: string,
  ...codes: PerdureErrorCode[]
): Promise<PerdureError> {
  try {
    await work;
  } catch (error) {
    return checkError(error, what, codes);
  }
  throw new Error(`${what}: expected ${codeText(codes)}, but it was accepted`);
}

/** Runs `work` in a transaction that is undone: it throws on purpose behind it. */
export function undo(agent: Pick<AgentHost, "tx">, work: () => void): void {
  try {
    agent.tx(() => {
      work();
      throw new Error("undo");
    });
  } catch {
    // as planned
  }
}

const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 5;

/** Waits until `condition` holds. @throws Error with `what` if it never does */
export async function eventually(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    ensure(Date.now() < end, `${what}: not within ${PATIENCE_MS} ms`);
    await new Promise((resolve) => void setTimeout(resolve, LOOK_AGAIN_MS));
  }
}

function checkError(error: unknown, what: string, codes: readonly PerdureErrorCode[]): PerdureError {
  if (!PerdureError.is(error)) {
    throw new Error(`${what}: expected ${codeText(codes)}, got ${errorText(error)}`, { cause: error });
  }
  ensure(
    codes.length === 0 || codes.includes(error.code),
    `${what}: expected ${codeText(codes)}, got ${error.code} (${error.message})`,
  );
  return error;
}

function codeText(codes: readonly PerdureErrorCode[]): string {
  return codes.length === 0 ? "a PerdureError" : `a PerdureError ${codes.join(" or ")}`;
}

function print(value: unknown): string {
  const text = JSON.stringify(value, (_, inner: unknown) =>
    inner instanceof Uint8Array ? { bytes: [...inner] } : isBufferJson(inner) ? { bytes: inner.data } : inner,
  );
  return text ?? String(value);
}

/** Node's Buffer turns itself into this before a replacer can see it. */
function isBufferJson(value: unknown): value is { data: unknown } {
  return typeof value === "object" && value !== null && "type" in value && value.type === "Buffer" && "data" in value;
}

const SHOWN = 300;

function cut(text: string): string {
  return text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}… (${text.length} characters)`;
}
