import type { AgentPath } from "./port.ts";

/** Methods of an agent as another one calls them: the same, but asynchronous. */
export type AgentStub<T> = {
  [K in keyof T as T[K] extends (...args: never[]) => unknown ? K : never]: T[K] extends (...args: infer A) => infer R
    ? (...args: A) => Promise<Awaited<R>>
    : never;
};

/** Names that are asked of any object by the language or by tools, and never mean a call. */
const NEVER_CALLED = new Set<string | symbol>([
  "then",
  "catch",
  "finally",
  "toJSON",
  "toString",
  "valueOf",
  "constructor",
]);

/** An object whose every method is a call of the agent at `path`. */
export function createStub<T>(
  path: AgentPath,
  call: (path: AgentPath, method: string, args: readonly unknown[]) => Promise<unknown>,
): AgentStub<T> {
  const methods = new Map<string, (...args: unknown[]) => Promise<unknown>>();
  return new Proxy(Object.create(null) as object, {
    get(_, name) {
      if (typeof name === "symbol" || NEVER_CALLED.has(name)) return undefined;
      let method = methods.get(name);
      if (method === undefined) methods.set(name, (method = (...args) => call(path, name, args)));
      return method;
    },
  }) as AgentStub<T>;
}
