import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { checkConsumer } from "./consumer-types.ts";
import { runTool } from "./run-tool.ts";

const root = join(import.meta.dirname, "..");

rmSync(join(root, "dist"), { recursive: true, force: true });
const compiled = await runTool("tsc", ["-p", "tsconfig.build.json", "--pretty", "false"], root);
if (!compiled.ok) {
  console.error(compiled.output);
  process.exit(1);
}
if (!existsSync(join(root, "dist", "index.js"))) {
  console.error("build: tsc wrote no dist/index.js");
  process.exit(1);
}

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Record<string, unknown>;
const { messages } = await publint({ pkgDir: root, strict: true });
for (const message of messages) console.error(`publint ${message.type}: ${formatMessage(message, manifest)}`);
if (messages.some((message) => message.type === "error")) process.exit(1);

const wrong = await checkConsumer(root);
for (const line of wrong) console.error(`types without optional peers: ${line}`);
if (wrong.length > 0) process.exit(1);
console.log("build: dist is ready");
