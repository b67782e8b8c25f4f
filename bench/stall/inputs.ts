/** One input of the worst kind that is still taken. */
export interface Input {
  readonly what: string;
  /** How it is sent: frames of one socket of an agent, or a body to a chat or an MCP server. */
  readonly to: "box" | "talk" | "work" | "post" | "mcp";
  /** Sent once before, not measured. */
  readonly first?: () => readonly string[];
  readonly texts: () => readonly string[];
  /** It is refused: then that is what was measured. */
  readonly refused?: true;
}

const MIB = 1024 * 1024;
const user = (id: string, text = "hello") => ({ id, role: "user", parts: [{ type: "text", text }] });
const answer = (id: string, values: number) => ({
  ...{ id, role: "assistant" },
  parts: [{ type: "text", text: "x".repeat(40), more: Array.from({ length: values }, (_, n) => ({ n })) }],
});

function chat(id: string, body: unknown): string {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return JSON.stringify({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body: text } });
}

/** What a public client sends that shows so many messages. */
function transcript(count: number, name: string, values = 4): unknown[] {
  return Array.from({ length: count }, (_, n) => (n % 2 === 0 ? user(`${name}${n}`) : answer(`${name}${n}`, values)));
}

const rpc = (args: string, id = "1") => `{"type":"rpc","id":"${id}","method":"take","args":${args}}`;
const state = (value: string) => `{"type":"cf_agent_state","state":${value}}`;
const list = (item: (n: number) => string, count: number) =>
  `[${Array.from({ length: count }, (_, n) => item(n)).join(",")}]`;
const fill = (item: string, bytes: number) =>
  `[${`${item},`.repeat(Math.floor(bytes / (item.length + 1)) - 1)}${item}]`;

const write = (count: number, bytes: number) =>
  JSON.stringify({
    type: "perdure_rows_write",
    txid: `t${count}`,
    changes: Array.from({ length: count }, (_, n) => ({
      ...{ table: "rows", key: `k${n}`, operation: "upsert", value: { id: `k${n}`, text: "x".repeat(bytes) } },
    })),
  });

/** Work of an agent that is done before the frame behind it is answered. */
const work = (what: string, kind: string, refused?: true): Input => ({
  ...{ what, to: "work", ...(refused && { refused }) },
  first: () => [call("prepare", kind)],
  texts: () => [call("work", kind)],
});
const call = (method: string, kind: string) =>
  JSON.stringify({ type: "rpc", id: `${method} ${kind}`, method, args: [kind, "FAR"] });

const mcpCall = (args: string) =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"take","arguments":${args}}}`;

/** What was tried, the worst of each kind. */
export const inputs: readonly Input[] = [
  { what: "a call, 10 MiB of text", to: "box", texts: () => [rpc(`["${"x".repeat(9.9 * MIB)}"]`)] },
  { what: "a call, 10 MiB of escapes", to: "box", texts: () => [rpc(`["${'\\"'.repeat(4.9 * MIB)}"]`)] },
  {
    what: "refused: a call, 16 MiB of escapes",
    to: "box",
    refused: true,
    texts: () => [rpc(`["${'\\"'.repeat(7.9 * MIB)}"]`)],
  },
  {
    what: "a call, 50,000 values, every object of another shape",
    to: "box",
    texts: () => [rpc(list((n) => `{"k${n}":1}`, 24_900))],
  },
  {
    what: "a call, one object of 49,000 keys",
    to: "box",
    texts: () => [rpc(`[{${list((n) => `"k${n}":1`, 49_000).slice(1, -1)}}]`)],
  },
  { what: "a state, 25,000 lists", to: "box", texts: () => [state(list(() => "[]", 24_900))] },
  {
    what: "a state, 49,000 keys",
    to: "box",
    texts: () => [state(`{${list((n) => `"k${n}":1`, 49_000).slice(1, -1)}}`)],
  },
  { what: "a state, 4 MiB of text", to: "box", texts: () => [state(`"${"x".repeat(3.99 * MIB)}"`)] },
  {
    what: "refused: 16 MiB of opening brackets, closed",
    to: "box",
    refused: true,
    texts: () => [rpc("[".repeat(7.9 * MIB) + "]".repeat(7.9 * MIB))],
  },
  {
    what: "refused: a call with 16 MiB of empty lists",
    to: "box",
    refused: true,
    texts: () => [rpc(fill("[]", 15.9 * MIB))],
  },
  {
    what: "refused: a state with 16 MiB of small objects",
    to: "box",
    refused: true,
    texts: () => [state(fill('{"a":1}', 15.9 * MIB))],
  },
  { what: "1,000 rows in one write, 3 MiB", to: "box", texts: () => [write(1_000, 2_900)] },
  {
    what: "10,000 calls at once",
    to: "box",
    texts: () => Array.from({ length: 10_000 }, (_, n) => rpc("[]", String(n))),
  },
  {
    what: "50,000 frames of 2 bytes, then a call",
    to: "box",
    texts: () => [...Array.from({ length: 50_000 }, () => "{}"), rpc("[]")],
  },
  {
    what: "5,000 known messages and a new one",
    to: "talk",
    first: () => pages(transcript(5_000, "k"), "k"),
    texts: () => [chat("known", { messages: [...transcript(5_000, "k"), user("new")] })],
  },
  {
    what: "500 new messages",
    to: "talk",
    texts: () => [chat("many", { messages: Array.from({ length: 500 }, (_, n) => user(`n${n}`)) })],
  },
  {
    what: "20,000 messages, one of them new, 1,000,000 values",
    to: "talk",
    texts: () => [chat("long", { messages: [...transcript(19_990, "l", 20), user("l-new")] })],
  },
  {
    what: "a message of 8 MB",
    to: "talk",
    texts: () => [chat("big", { messages: [user("big", "x".repeat(7_900_000))] })],
  },
  {
    what: "a message of 4 million quotes, escaped twice",
    to: "talk",
    texts: () => [chat("quotes", { messages: [user("quotes", '"'.repeat(3.9 * MIB))] })],
  },
  {
    what: "a message of 1,000 parts and 20,000 values",
    to: "talk",
    texts: () => [
      chat("parts", {
        messages: [
          {
            id: "p",
            role: "user",
            parts: Array.from({ length: 1_000 }, (_, n) => ({
              type: "data-x",
              data: Array.from({ length: 15 }, () => n),
            })),
          },
        ],
      }),
    ],
  },
  {
    what: "500 tools of a client, 1 MiB",
    to: "talk",
    texts: () => [
      chat("tools", {
        messages: [user("t1")],
        clientTools: Array.from({ length: 500 }, (_, n) => ({
          name: `tool${n}`,
          parameters: { type: "object", description: "x".repeat(1_900) },
        })),
      }),
    ],
  },
  {
    what: "refused: 200,000 messages",
    to: "talk",
    refused: true,
    texts: () => [chat("flood", { messages: Array.from({ length: 200_000 }, (_, n) => user(`f${n}`)) })],
  },
  {
    what: "refused: 200,000 messages in a POST",
    to: "post",
    refused: true,
    texts: () => [JSON.stringify({ messages: Array.from({ length: 200_000 }, (_, n) => user(`g${n}`)) })],
  },
  {
    what: "a POST of 32 MB: 20,000 messages",
    to: "post",
    texts: () => [
      JSON.stringify({
        messages: [
          ...Array.from({ length: 19_990 }, (_, n) => ({
            id: `h${n}`,
            role: "assistant",
            parts: [{ type: "text", text: "x".repeat(1_500) }],
          })),
          user("h-new"),
        ],
      }),
    ],
  },
  {
    what: "refused: a POST of 32 MiB of empty lists",
    to: "post",
    refused: true,
    texts: () => [`{"messages":[],"x":${fill("[]", 31 * MIB)}}`],
  },
  { what: "MCP: a call of 4 MB of text", to: "mcp", texts: () => [mcpCall(`{"a":"${"x".repeat(3_900_000)}"}`)] },
  {
    what: "MCP: a call with 19,000 keys",
    to: "mcp",
    texts: () => [mcpCall(`{${list((n) => `"k${n}":1`, 19_000).slice(1, -1)}}`)],
  },
  {
    what: "refused: MCP, 4 MB of empty lists",
    to: "mcp",
    refused: true,
    texts: () => [mcpCall(fill("[]", 3_900_000))],
  },
  work("an MCP server answers 4 MB of text", "mcp long"),
  work("an MCP server answers 12,000 texts", "mcp many"),
  work("an MCP server answers 48,000 values", "mcp structured"),
  work("refused: an MCP server answers 1,000,000 values", "mcp refused", true),
  work("a page of 1 MB of paragraphs", "page paragraphs"),
  work("a page of 1 MB of entities", "page entities"),
  work("a page of 1 MB of table cells", "page cells"),
  work("find in 10,000 files", "find"),
  work("grep in 10,000 files", "grep"),
  work("read from a text of 20 MB", "read"),
  work("edit a text of 4 MB", "edit"),
];

/** What fills a conversation first: so many new messages at a time. */
function pages(messages: readonly unknown[], name: string): string[] {
  const said = messages.filter((_, n) => n % 2 === 0);
  return Array.from({ length: Math.ceil(said.length / 400) }, (_, page) =>
    JSON.stringify({ type: "cf_agent_chat_messages", messages: said.slice(page * 400, page * 400 + 400), name }),
  );
}
