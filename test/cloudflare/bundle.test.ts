import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { bundleWorker } from "../../scripts/workerd/bundle.ts";

const MAX_BYTES = 1_000_000;

test("agents are bundled for the platform without Node's modules, in less than a megabyte", async () => {
  const dir = mkdtempSync(join(tmpdir(), "perdure-bundle-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const { file, imports } = await bundleWorker(join(import.meta.dirname, "worker.ts"), join(dir, "worker.js"));
  expect(imports).toEqual(["cloudflare:workers", "node:async_hooks"]);
  const bytes = gzipSync(readFileSync(file)).byteLength;
  expect(bytes).toBeGreaterThan(0);
  expect(bytes).toBeLessThan(MAX_BYTES);
});
