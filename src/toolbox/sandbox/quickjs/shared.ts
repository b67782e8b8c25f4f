import { createQuickJsSandbox, type ParkingSandbox } from "./create.ts";

let shared: ParkingSandbox | undefined;

/** The sandbox that everything in this process uses that was given none of its own. Idle, it holds nothing. */
export function sharedQuickJsSandbox(): ParkingSandbox {
  return (shared ??= createQuickJsSandbox());
}
