// Run in a process of its own: goes on with a run that another process has parked. Prints the result as JSON.
import { readFileSync } from "node:fs";
import { createQuickJsSandbox } from "perdure/tools";

const [file = "", key = ""] = process.argv.slice(2);
const sandbox = createQuickJsSandbox({ snapshotKey: key });
const result = await sandbox.resume(readFileSync(file), [{ call: 1, value: { approved: true } }], {
  can: { tools: { tools: { add: (args) => (args as { a: number }).a + 1 } } },
});
console.log(JSON.stringify(result));
await sandbox.dispose();
