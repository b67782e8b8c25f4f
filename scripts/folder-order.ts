/** One entry of `src/`: a folder, or a file at its root. */
export interface Place {
  readonly name: string;
  /** What is there, for the map. */
  readonly what: string;
  /** Narrower than "everything above": these places, and itself. */
  readonly only?: readonly string[];
}

/**
 * The order of dependence. A place may import from places above it and from itself, types included. Adding
 * a folder to `src/` starts with a line here: the map in AGENTS.md is made of it (`npm run map`).
 */
export const folderOrder: readonly Place[] = [
  { name: "error.ts", what: "`PerdureError` with a code" },
  { name: "nearest.ts", what: "the name that was meant, for messages about a mistyped one" },
  { name: "known-options.ts", what: "options with names that there are not are refused" },
  { name: "yes-or-no.ts", what: "what a hook said that must answer true or false: anything else is an error" },
  { name: "ai-sdk.ts", what: "which version of the AI SDK is there" },
  { name: "id.ts", what: "ids and the `Clock` port" },
  { name: "hash.ts", what: "SHA-256, and quick fingerprints" },
  { name: "defer.ts", what: "what ends with the scope that it was made in" },
  { name: "event.ts", what: "what an agent reports" },
  { name: "identity.ts", what: "who somebody is, as the app established it" },
  { name: "owner.ts", what: "whose code runs, for what a process keeps beside its agents" },
  { name: "port.ts", what: "`AgentHost`: all that an agent may ask of the world, and what a host asks of an agent" },
  { name: "stub.ts", what: "the type of an agent that is called from elsewhere" },
  { name: "message", what: "pure: what a message and its parts are" },
  { name: "wire", what: "pure: frames in and out, addresses, close codes" },
  { name: "store", what: "tables and migrations; one file per table; the only SQL" },
  {
    name: "session",
    what: "the stored conversation; context blocks; the ledger of model calls, budgets and prices; search",
  },
  { name: "fiber", what: "fibers, schedules, queue: work with a due time" },
  { name: "context", what: "what the model is sent: messages, estimates, summaries and what is left out" },
  { name: "tool", what: "tools: options, running one call, the book of calls and approvals, bounded outputs" },
  { name: "sandbox", what: "where code of a model runs: QuickJS, bash, npm packages, a jailed process, a browser" },
  { name: "egress", what: "what may be asked of the network, by whom; `fetch` for tools" },
  { name: "workspace", what: "an agent's files and the tools that work on them" },
  { name: "skill", what: "instructions and scripts that are loaded when they are needed" },
  { name: "extension", what: "tools and hooks that a model or a user wrote, in a sandbox" },
  { name: "mcp", what: "servers of tools: ours for others, and those that agents use" },
  {
    name: "turn",
    what: "the engine: inbox, turn states, stream log, tool answers, recovery; `step/` is the step loop of `Think`",
  },
  { name: "live", what: "streams to clients: broadcast, replay, resume handshake, server-sent events" },
  {
    name: "agent",
    what: "`Agent`, `AIChatAgent` and `Think`, what users extend; who may do what; HTTP; runs of other agents",
  },
  { name: "host", what: "what implements the port: lives, gate, sockets; `node/` has files, HTTP and `ws`" },
  // Stands alone, and runs in browsers: usable without an agent. Of agents it knows the frames.
  {
    name: "collections",
    what: "rows that survive: logs, durable tools and agents on TanStack DB. Runs in browsers too",
    only: ["error.ts", "id.ts", "message", "wire"],
  },
  // Runs in browsers: nothing that an agent needs may come along.
  {
    name: "client",
    what: "what runs elsewhere: `AgentClient`, chat transports, React hooks",
    only: ["error.ts", "id.ts", "message", "wire"],
  },
  {
    name: "testing",
    what: "exported: manual clock, scripted model and model server, crash harness, conformance suites",
  },
  // What tools are made of, for apps that make their own.
  { name: "tools.ts", what: "`perdure/tools`: what tools are made of" },
  // The public face. Last, so that nothing inside imports it: that is how barrels make cycles.
  { name: "index.ts", what: "`perdure`, the public face" },
];

/** The place that a path such as `src/store/x.ts` or `src/base/id.ts` belongs to. */
export function placeOf(path: string): string {
  return path.split("/")[1] ?? "";
}

/** The table of the map: {@link folderOrder} in Markdown, as the formatter leaves it. */
export function mapTable(): string {
  const cells = folderOrder.map(({ name, what }) => [`\`src/${name}${name.includes(".") ? "" : "/"}\``, what] as const);
  const rows = [["place", "one line"] as const, ...cells];
  const [wide, wider] = [0, 1].map((column) => Math.max(...rows.map((row) => row[column as 0 | 1].length))) as [
    number,
    number,
  ];
  const line = ([place, what]: readonly [string, string]) => `| ${place.padEnd(wide)} | ${what.padEnd(wider)} |`;
  return [line(["place", "one line"]), `| ${"-".repeat(wide)} | ${"-".repeat(wider)} |`, ...cells.map(line)].join("\n");
}
