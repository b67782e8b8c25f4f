// How much a page has to load: `node scripts/client-size.ts` measures and prints; `--write` also updates bench/RESULTS.md.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build, defaultClientConditions, type Plugin } from "vite";
import { replaceSection } from "../bench/foundation/section.ts";

const root = join(import.meta.dirname, "..");
const ENTRY = "virtual:entry";
const TITLE = "Size of the clients";

/** React is there anyway. */
const REACT = /^react(?:-dom)?(?:\/|$)/;
/** Pages that use the AI SDK themselves have it anyway too. */
const REACT_AND_SDK = /^(?:react(?:-dom)?|ai|@ai-sdk\/.*|zod)(?:\/|$)/;

interface Size {
  readonly min: number;
  readonly gzip: number;
}

interface Line {
  readonly what: string;
  readonly ours: string;
  readonly theirs: string;
}

const lines: readonly Line[] = [
  {
    what: "`useAgent`",
    ours: `export { useAgent } from "perdure/react";`,
    theirs: `export { useAgent } from "agents/react";`,
  },
  {
    what: "`useAgent` and `useAgentChat`",
    ours: `export { useAgent, useAgentChat } from "perdure/react";`,
    theirs: `export { useAgent } from "agents/react"; export { useAgentChat } from "@cloudflare/ai-chat/react";`,
  },
  {
    what: "both and `useAgentToolEvents`",
    ours: `export { useAgent, useAgentChat, useAgentToolEvents } from "perdure/react";`,
    theirs:
      `export { useAgent, useAgentToolEvents } from "agents/react";` +
      `export { useAgentChat } from "@cloudflare/ai-chat/react";`,
  },
  {
    what: "`AgentClient`, without React",
    ours: `export { AgentClient } from "perdure/client";`,
    theirs: `export { AgentClient } from "agents/client";`,
  },
];

/** Bundles in memory as a page would: minified, unused code dropped, all files that come with it counted. */
async function sizeOf(code: string, external: RegExp): Promise<Size> {
  const entry: Plugin = {
    name: "entry",
    resolveId: (id) => (id === ENTRY ? join(root, "entry.js") : undefined),
    load: (id) => (id === join(root, "entry.js") ? code : undefined),
  };
  const result = await build({
    root,
    configFile: false,
    logLevel: "error",
    plugins: [entry],
    resolve: { conditions: ["perdure-source", ...defaultClientConditions] },
    build: {
      write: false,
      target: "esnext",
      modulePreload: false,
      rolldownOptions: {
        input: ENTRY,
        external,
        preserveEntrySignatures: "strict",
        output: { format: "es" },
      },
    },
  });
  const outputs = [result].flat().flatMap((one) => ("output" in one ? one.output : []));
  const files = outputs.flatMap((file) => (file.type === "chunk" ? [file.code] : []));
  if (files.length === 0) throw new Error(`Nothing was built from: ${code}`);
  const sum = (of: (file: string) => number) => files.reduce((total, file) => total + of(file), 0);
  return { min: sum((file) => Buffer.byteLength(file)), gzip: sum((file) => gzipSync(file, { level: 9 }).length) };
}

const kib = (bytes: number) => (bytes / 1024).toFixed(1);
const cell = ({ min, gzip }: Size) => `${kib(gzip)} (${kib(min)})`;

async function row({ what, ours, theirs }: Line): Promise<string> {
  const cells: string[] = [];
  for (const external of [REACT, REACT_AND_SDK]) {
    const [mine, other] = [await sizeOf(ours, external), await sizeOf(theirs, external)];
    cells.push(cell(mine), cell(other), `${(mine.gzip / other.gzip).toFixed(2)}x`);
  }
  return `| ${[what, ...cells].join(" | ")} |`;
}

const versionOf = (name: string) => {
  const { version } = JSON.parse(readFileSync(join(root, "node_modules", name, "package.json"), "utf8")) as {
    version: string;
  };
  return `\`${name}\` ${version}`;
};

const rows: string[] = [];
for (const line of lines) rows.push(await row(line));
const text = [
  `## ${TITLE}`,
  "",
  "KiB after gzip, in brackets minified; by `node scripts/client-size.ts --write`. Beside it the public clients:",
  `${versionOf("agents")} and ${versionOf("@cloudflare/ai-chat")}.`,
  "",
  "| what | Perdure | public | ratio | Perdure, AI SDK not counted | public, AI SDK not counted | ratio |",
  "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
  ...rows,
  "",
  "- Built with Vite for production. React is never counted. All else that the import brings along is.",
  "- On the right the AI SDK (`ai`, `@ai-sdk/*`) and `zod` are left out: a page may have them anyway. Perdure's hooks use only their types.",
  "",
].join("\n");

process.stdout.write(`${text}\n`);
if (process.argv.includes("--write")) {
  const results = join(root, "bench", "RESULTS.md");
  writeFileSync(results, replaceSection(readFileSync(results, "utf8"), TITLE, text));
}
