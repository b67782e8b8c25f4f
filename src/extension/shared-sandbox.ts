import type { Sandbox } from "../sandbox/sandbox.ts";

let shared: Promise<Sandbox> | undefined;

/** The QuickJS sandbox of the process, made when it is first needed. Idle, it holds nothing. */
export function sharedSandbox(): Promise<Sandbox> {
  shared ??= import("../sandbox/quickjs/create.ts").then(({ createQuickJsSandbox }) => createQuickJsSandbox());
  return shared;
}
