// An app that has the built package and nothing else of the repository: imports all of it, and has one conversation in
// which code runs where the package starts programs of its own.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const loaded = new Set();
const ownFiles = new Set();
registerHooks({
  load(url, context, next) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(url)?.[1];
    if (found !== undefined) loaded.add(found);
    // What is shared has a hash behind its name.
    if (found === "perdure") ownFiles.add(url.replace(/^.*\/dist\//, "").replace(/-[\w-]{8}\.js$/, ""));
    return next(url, context);
  },
});
/** What was loaded since the last time. */
function newlyLoaded() {
  const told = { packages: [...loaded].sort(), files: [...ownFiles].sort() };
  loaded.clear();
  ownFiles.clear();
  return told;
}

const { Think } = await import("perdure");
const { serve } = await import("perdure/node");
const onImport = newlyLoaded();

/** The least model: it says one word. */
const brief = {
  specificationVersion: "v4",
  provider: "brief",
  modelId: "brief",
  supportedUrls: {},
  async doStream() {
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const parts = [
      { type: "stream-start", warnings: [] },
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: "Yes." },
      { type: "text-end", id: "t" },
      { type: "finish", finishReason: { unified: "stop" }, usage },
    ];
    return { stream: ReadableStream.from(parts) };
  },
};
class Brief extends Think {
  getModel() {
    return brief;
  }
  async ask(input) {
    await this.runTurn({ input });
    return this.messages.at(-1).parts.find(({ type }) => type === "text").text;
  }
}
const first = await serve({ agents: { Brief }, dir: `${process.argv[2]}/brief`, port: 0, signals: false, log: false });
const saidFirst = await first.getAgentByName(Brief, "one").ask("Are you there?");
await first.stop();
const onFirstTurn = newlyLoaded();

const { createBashTool, createExecuteTool } = await import("perdure/tools");
const { scriptedModel } = await import("perdure/testing");
const model = scriptedModel([
  {
    toolCalls: [
      { toolName: "execute", input: { code: "return 6 * 7;" } },
      { toolName: "bash", input: { command: "echo $((6 * 8))" } },
    ],
  },
  "Both were run.",
]);
class Talk extends Think {
  getModel() {
    return model;
  }
  getTools() {
    return { execute: createExecuteTool({ tools: {} }), bash: createBashTool() };
  }
  async ask(input) {
    await this.runTurn({ input });
    return JSON.stringify(this.messages);
  }
}
const host = await serve({ agents: { Talk }, dir: process.argv[2], port: 0, signals: false, log: false });
const said = await host.getAgentByName(Talk, "one").ask("Run both.");
await host.stop();

// A name that two files have is changed in one of them where both come into one file; what is public keeps its own, but for
// the 2 that the bundler puts behind a class that mentions itself.
const { exports } = JSON.parse(readFileSync("node_modules/perdure/package.json", "utf8"));
const misnamed = [];
let names = 0;
// Durable Objects are no part of Node.
const elsewhere = new Set(["./package.json", "./cloudflare"]);
for (const subpath of Object.keys(exports).filter((one) => !elsewhere.has(one))) {
  const face = await import(`perdure${subpath.slice(1)}`);
  const known = new Set(Object.keys(face).map((name) => name.toLowerCase()));
  names += known.size;
  for (const [name, value] of Object.entries(face)) {
    const isClass = typeof value === "function" && /^class\b/.test(String(value));
    // Some have two names.
    if (isClass && !known.has(value.name.replace(/2$/, "").toLowerCase())) misnamed.push(name);
  }
}
console.log(JSON.stringify({ onImport, saidFirst, onFirstTurn, said, names, misnamed }));
