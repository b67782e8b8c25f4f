/** One entry of `src/`: a folder, a folder in it, or a file at its root. */
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
  { name: "base", what: "errors, ids and the clock, hashes, options: what everything else is written with" },
  { name: "port.ts", what: "`AgentHost`: all that an agent may ask of the world, and what a host asks of an agent" },
  { name: "stub.ts", what: "the type of an agent that is called from elsewhere" },
  { name: "message", what: "pure: what a message and its parts are" },
  { name: "wire", what: "pure: frames in (`parse.ts`) and out (`encode.ts`), addresses, close codes" },
  { name: "door", what: "who may do what (`authorize.ts`), connections, and the table of routes over HTTP" },
  { name: "store", what: "tables and migrations; one file per table; the only SQL" },
  { name: "search", what: "full-text search in conversations" },
  { name: "ledger", what: "model calls, budgets, prices, and who pays" },
  { name: "memory", what: "context blocks: what an agent remembers beside its conversation" },
  { name: "session", what: "the stored conversation: a tree of messages, its sessions and their names" },
  { name: "media", what: "files in messages: moved out of rows, read back, referred to" },
  { name: "erase", what: "forgetting for good, with a receipt" },
  { name: "work", what: "rows with a due time: fibers, schedules, queue, scheduled tasks" },
  {
    name: "context",
    what: "what the model is sent: begin with `view.ts`; estimates, how summaries are made (`compactor.ts`; when: `turn/step`), what is left out",
  },
  {
    name: "tool",
    what: "tools: judging and running one call (`runner.ts`), the book of calls and approvals, actions, bounded outputs",
  },
  {
    name: "model",
    what: "one booked call of a model: reserved, read, settled, tried again; what providers' errors mean",
  },
  {
    name: "turn",
    what: "a turn: `intake/` is the way in, `engine/` its life from start to end, `step/` the step loop of `Think` (`run-steps.ts`), which also decides when it compacts (`StepWindow` in `step-run.ts`)",
  },
  {
    name: "live",
    what: "a chat and its clients: broadcast, replay, resume handshake, sessions; `http/` without a socket",
  },
  {
    name: "toolbox/sandbox",
    what: "where code of a model runs: QuickJS, bash, npm packages, a jailed process, a browser",
  },
  { name: "toolbox/egress", what: "what may be asked of the network, by whom; `fetch` for tools" },
  { name: "toolbox/workspace", what: "an agent's files and the tools that work on them" },
  { name: "toolbox/skill", what: "instructions and scripts that are loaded when they are needed" },
  { name: "toolbox/extension", what: "tools and hooks that a model or a user wrote, in a sandbox" },
  { name: "toolbox/mcp", what: "servers of tools: ours for others, and those that agents use" },
  {
    name: "messenger",
    what: "conversations on other networks: `channel.ts` is the port (`slack/`, `telegram/`; `chat-sdk/` for any network with a Chat SDK adapter), `front.ts` takes what comes, `courier.ts` delivers and tries again, `speaker.ts` keeps the pace",
  },
  {
    name: "parts",
    what: "what agents are made of (`part.ts`), each with its rows and frames: chat, MCP, tasks, files; `runs/` of children, `rows/` of collections",
  },
  {
    name: "agent",
    what: "what users extend: `Agent`, then `ChatAgent` (not exported), then `AIChatAgent` and `Think`; `hosting.ts` is where frames, requests and alarms enter",
  },
  { name: "admin", what: "the door of operators: what they can ask for, what they are told, what is hidden from them" },
  {
    name: "host",
    what: "what implements the port: lives, gate, sockets; `node/` has files, HTTP and `ws`, in `node/cluster/` PostgreSQL in their place, `cloudflare/` Durable Objects",
  },
  { name: "cli", what: "`perdure`, the command: asks a host by its socket or over HTTP, or opens a directory at rest" },
  // Stands alone, and runs in browsers: usable without an agent. Of agents it knows the frames.
  {
    name: "collections",
    what: "rows that survive: logs, durable tools and agents on TanStack DB. Runs in browsers too",
    only: ["base", "message", "wire"],
  },
  // Runs in browsers: nothing that an agent needs may come along.
  {
    name: "client",
    what: "what runs elsewhere: `AgentClient`, chat transports, React hooks",
    only: ["base", "message", "wire"],
  },
  {
    name: "testing",
    what: "exported: manual clock, scripted model and model server, crash harness, conformance suites",
  },
  { name: "public", what: "lists: what subpaths of the package export that have no folder of their own" },
  // What tools are made of, for apps that make their own.
  { name: "tools.ts", what: "`perdure/tools`: what tools are made of" },
  // The public face. Last, so that nothing inside imports it: that is how barrels make cycles.
  { name: "index.ts", what: "`perdure`, the public face" },
];

/** The place that a path such as `src/store/x.ts` or `src/toolbox/mcp/x.ts` belongs to. */
export function placeOf(path: string): string {
  const [, first = "", second = ""] = path.split("/");
  const nested = `${first}/${second}`;
  return folderOrder.some(({ name }) => name === nested) ? nested : first;
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
