import { expect, test } from "vitest";
import { diskProbe } from "../support/disk-probe.ts";

const WORD = "Zanzibarquartz";

test("what was deleted stands in the files until they are scrubbed", async () => {
  const { host, filesWith } = await diskProbe();
  host.sql("CREATE TABLE note (text TEXT)");
  for (let n = 0; n < 200; n++) host.sql("INSERT INTO note VALUES (?)", `${WORD} ${n} ${"x".repeat(500)}`);
  host.sql("INSERT INTO note VALUES ('stays')");
  host.sql("DELETE FROM note WHERE text <> 'stays'");
  await host.durable();
  expect(filesWith(WORD)).not.toEqual([]);
  await host.scrub?.();
  expect(filesWith(WORD)).toEqual([]);
  expect(host.sql("SELECT text FROM note")).toEqual([{ text: "stays" }]);
  host.sql("INSERT INTO note VALUES ('more')");
  await host.durable();
  expect(host.sql("SELECT count(*) AS n FROM note")).toEqual([{ n: 2 }]);
});

test("an agent without rows has nothing to scrub, and gets no file by it", async () => {
  const { host, filesWith } = await diskProbe();
  await host.scrub?.();
  expect(host.blank).toBe(true);
  expect(filesWith("perdure_message")).toEqual(expect.not.arrayContaining([expect.stringContaining("Probe")]));
});
