/** One entry of `src/`: a folder, or a file at its root. */
export interface Place {
  readonly name: string;
  /** Narrower than "everything above": these places, and itself. */
  readonly only?: readonly string[];
}

/**
 * The order of dependence. A place may import from places above it and from itself, types included. Adding
 * a folder to `src/` starts with a line here.
 */
export const folderOrder: readonly Place[] = [
  { name: "error.ts" },
  { name: "nearest.ts" },
  { name: "known-options.ts" },
  { name: "yes-or-no.ts" },
  { name: "ai-sdk.ts" },
  { name: "id.ts" },
  { name: "hash.ts" },
  { name: "defer.ts" },
  { name: "event.ts" },
  { name: "identity.ts" },
  { name: "owner.ts" },
  { name: "port.ts" },
  { name: "stub.ts" },
  { name: "message" },
  { name: "wire" },
  { name: "store" },
  { name: "session" },
  { name: "fiber" },
  { name: "context" },
  { name: "tool" },
  { name: "sandbox" },
  { name: "egress" },
  { name: "workspace" },
  { name: "skill" },
  { name: "extension" },
  { name: "mcp" },
  { name: "turn" },
  { name: "live" },
  { name: "agent" },
  { name: "host" },
  { name: "messenger" },
  // Stands alone, and runs in browsers: usable without an agent. Of agents it knows the frames.
  { name: "collections", only: ["error.ts", "id.ts", "message", "wire"] },
  // Runs in browsers: nothing that an agent needs may come along.
  { name: "client", only: ["error.ts", "id.ts", "message", "wire"] },
  { name: "cli" },
  { name: "studio" },
  { name: "testing" },
  // What tools are made of, for apps that make their own.
  { name: "tools.ts" },
  // The public face. Last, so that nothing inside imports it: that is how barrels make cycles.
  { name: "index.ts" },
];

/** The place that a path such as `src/store/x.ts` or `src/id.ts` belongs to. */
export function placeOf(path: string): string {
  return path.split("/")[1] ?? "";
}
