// The terminal sessions of the pages: each command of a ```console block is run as it stands there, in the order of the page,
// against a host of its own, and what it prints is written under it. `npm run transcripts` writes; with --print it only shows.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tool } from "ai";
import { Think } from "perdure";
import { serve, type ServedHost } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { z } from "zod";

const root = join(import.meta.dirname, "..");
const PAGES = ["docs/operate.md"];
/** In a page: the host is stopped here. */
const STOP = "kill %1";

const model = scriptedModel(({ prompt }) => {
  const said = JSON.stringify(prompt.at(-1));
  if (said.includes("A-1031") && prompt.at(-1)?.role === "user")
    return { toolCalls: [{ toolCallId: "call_7f3a", toolName: "refund", input: { order: "A-1031", amount: 7 } }] };
  return prompt.at(-1)?.role === "tool"
    ? "Your money is on its way."
    : "Your order left us on Monday, and should be there by Thursday.";
});

class Support extends Think {
  override workspaceTools = false as const;
  override prices = { "scripted/scripted": { input: 1, output: 2 } };

  override getModel() {
    return model;
  }

  override getTools() {
    const refund = tool({
      description: "Pays money back.",
      inputSchema: z.object({ order: z.string(), amount: z.number() }),
      needsApproval: true,
      execute: () => "paid",
    });
    return { refund };
  }
}

async function openHost(dir: string): Promise<ServedHost> {
  const host = await serve({ agents: { Support }, dir, port: 0, signals: false });
  await host.getAgentByName(Support, "anna").runTurn({ input: "Where is my order?" });
  await host.getAgentByName(Support, "ben").runTurn({ input: "Where is my order A-1031? I want my 7 $ back." });
  return host;
}

function run(command: string, cwd: string): Promise<string> {
  const perdure = `${process.execPath} --conditions=perdure-source --disable-warning=ExperimentalWarning ${root}/src/cli/perdure.ts`;
  return new Promise((resolve) => {
    // As a shell has it; `perdure` is the command of this repository.
    execFile("sh", ["-c", `perdure() { ${perdure} "$@"; }; ${command}`], { cwd }, (_, out, err) =>
      resolve((out + err).trimEnd()),
    );
  });
}

async function transcribe(page: string): Promise<string> {
  const cwd = mkdtempSync(join(tmpdir(), "perdure-transcript-"));
  let host: ServedHost | undefined = await openHost(join(cwd, ".perdure"));
  try {
    const text: string[] = [];
    let inside = false;
    for (const line of readFileSync(join(root, page), "utf8").split("\n")) {
      const fence = /^```(\w*)/.exec(line);
      if (fence !== null) {
        if (inside && text.at(-1) === "") text.pop();
        inside = fence[1] === "console";
      }
      if (!inside || fence !== null) {
        text.push(line);
        continue;
      }
      const [, command] = /^\$ ((?:perdure|tar|kill) .*)$/.exec(line) ?? [];
      if (command === undefined) continue;
      text.push(line);
      if (command === STOP) {
        await host?.stop();
        host = undefined;
      } else {
        const said = await run(command, cwd);
        if (said !== "") text.push(said);
      }
      text.push("");
    }
    return text.join("\n");
  } finally {
    await host?.stop();
    rmSync(cwd, { recursive: true, force: true });
  }
}

for (const page of PAGES) {
  const text = await transcribe(page);
  if (process.argv.includes("--print")) console.log(text);
  else writeFileSync(join(root, page), text);
}
