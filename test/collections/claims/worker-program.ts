// A worker in a process of its own. It takes a job, says so, and ends it when it is told to, whatever has come to
// pass meanwhile.
import { openStreamLog } from "perdure/collections";
import { onCommand, report } from "../../../src/testing/crash/child.ts";
import { openWorker } from "./desk.ts";

const { URL: url = "", OWNER: owner = "", LEASE_MS: leaseMs } = process.env;
const worker = openWorker(openStreamLog({ url, onError: () => {} }), { owner, leaseMs: Number(leaseMs) });
const { claim } = await worker.claims.acquire("job");
claim?.signal.addEventListener("abort", () => report({ type: "aborted" }));
onCommand(async () => {
  const finish = (row: { status: string }) => void (row.status = `done by ${owner}`);
  const counted = await worker.rows.update("job", finish, claim === undefined ? {} : { when: [claim.condition()] });
  report({ type: "finished", counted, released: await claim?.release() });
});
report({ type: "taken", attempt: claim?.attempt });
