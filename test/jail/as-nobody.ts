// Runs the jail from a process that is not root, and prints what came out of it.
import { argv, stdin } from "node:process";
import { text } from "node:stream/consumers";
import { createProcessSandbox } from "../../src/toolbox/sandbox/process/process-sandbox.ts";

const sandbox = createProcessSandbox({ temporary: argv[2] ?? "/tmp" });
const probe = await sandbox.probe();
const result = await sandbox.run({ language: "python", code: await text(stdin) });
const fork = await sandbox.run({ language: "bash", code: "echo $(id -u) > /tmp/x; cat /tmp/x" });
process.stdout.write(JSON.stringify({ probe, uid: process.getuid?.(), result, fork }));
await sandbox.dispose();
