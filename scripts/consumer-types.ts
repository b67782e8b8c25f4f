import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runTool, violationsOf } from "./run-tool.ts";

/** What an app may write that installs no optional peer, with every type looked at. */
const APP = `import { type AgentEnv, AIChatAgent, Think } from "perdure";
import { AgentClient } from "perdure/client";
import { serve } from "perdure/node";
import { createWorkspaceTools } from "perdure/tools";

export class Talk extends AIChatAgent<AgentEnv, { count: number }> {}
export class Quiet extends Think {
  override workspaceTools = false;
  override contextOverflow = false;
  override mediaRetention = false;
}
export const used = [AgentClient, serve, createWorkspaceTools];
`;

/**
 * The built declarations compile in an app that has none of the optional peers and looks at libraries too
 * (`skipLibCheck: false`). Needs `dist`.
 */
export async function checkConsumer(root: string): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "perdure-consumer-"));
  try {
    linkPackages(root, join(folder, "node_modules"));
    const compilerOptions = {
      ...{ target: "ES2024", lib: ["ES2024", "ESNext.Disposable", "DOM", "DOM.Iterable", "DOM.AsyncIterable"] },
      ...{ module: "NodeNext", strict: true, skipLibCheck: false, noEmit: true, types: ["node"] },
      // Else packages are looked for where the links lead to, and found.
      preserveSymlinks: true,
    };
    writeFileSync(join(folder, "app.ts"), APP);
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["app.ts"] }));
    const found = violationsOf("tsc", await runTool("tsc", ["-p", folder, "--pretty", "false"], folder));
    // What other packages have wrong in their own declarations is not ours to mend.
    return found.filter((line) => !/^node_modules\/(?!perdure\/)/.test(line) && !line.startsWith("  "));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** All packages of the repository but optional peers; Zod stays, because the AI SDK itself needs it. */
function linkPackages(root: string, to: string): void {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    peerDependenciesMeta: Record<string, unknown>;
  };
  const left = new Set(Object.keys(manifest.peerDependenciesMeta).filter((name) => name !== "zod"));
  mkdirSync(to);
  const link = (name: string, target: string) => left.has(name) || symlinkSync(target, join(to, name));
  const installed = join(root, "node_modules");
  for (const name of readdirSync(installed)) {
    if (name.startsWith(".")) continue;
    if (!name.startsWith("@")) {
      link(name, join(installed, name));
      continue;
    }
    mkdirSync(join(to, name));
    for (const inner of readdirSync(join(installed, name))) {
      link(`${name}/${inner}`, join(installed, name, inner));
    }
  }
  // Not the whole repository: it has all packages.
  mkdirSync(join(to, "perdure"));
  for (const name of ["dist", "package.json"]) symlinkSync(join(root, name), join(to, "perdure", name));
}
