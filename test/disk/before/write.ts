// Writes the directory into a folder and ends as by a kill. Run by hand with the version that is to be kept:
// node --conditions=perdure-source test/disk/before/write.ts FOLDER test/disk/before/directory.json.gz
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { setTimeout } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { createHost } from "perdure/node";
import { manualClock } from "perdure/testing";
import { Clerk, Talker, world } from "./agents.ts";
import { WRITTEN_AT } from "./written-at.ts";

const [dir, packed] = process.argv.slice(2);
if (dir === undefined) throw new Error("Name the folder.");

if (packed === undefined) {
  const host = createHost({ agents: { Clerk, Talker }, dir, clock: manualClock(WRITTEN_AT) });
  const clerk = host.getAgentByName(Clerk, "desk");
  await clerk.fill();
  await host.getAgentByName(Talker, "asks").say("both");
  await host.getAgentByName(Talker, "asks").yes("pay-a");
  world.hangs = true;
  await clerk.begin();
  await host.getAgentByName(Clerk, "cut").cut("tell");
  await host.getAgentByName(Clerk, "tool").cut("work");
  await host.getAgentByName(Talker, "cut").cut();
  // Until everything that can be on the disk is there.
  await setTimeout(3000);
  process.kill(process.pid, "SIGKILL");
} else {
  const { signal } = spawnSync(process.execPath, [...process.execArgv, import.meta.filename, dir], {
    stdio: "inherit",
  });
  if (signal !== "SIGKILL") throw new Error("The writer did not come to its end.");
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  // Of the empty databases that wait for new agents, one is enough.
  const paths = files
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !/-shm$|host\.pid$|spare\/(?!5\.db)/u.test(path))
    .sort();
  const texts = paths.map((path) => [relative(dir, path), readFileSync(path).toString("base64")]);
  writeFileSync(packed, gzipSync(JSON.stringify(Object.fromEntries(texts)), { level: 9 }));
  console.log(paths.map((path) => relative(dir, path)).join("\n"));
}
