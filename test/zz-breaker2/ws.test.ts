import { expect, test } from "vitest";
import { probeHost } from "../chat/probe-host.ts";
import { Workspace } from "../../src/workspace/workspace.ts";
const T = async (name: string, f: () => Promise<unknown>) => { const t = performance.now(); try { const r = await f(); console.log(name, "OK", JSON.stringify(r)?.slice(0, 300), (performance.now() - t).toFixed(0) + "ms"); } catch (e) { console.log(name, "THROWS", String(e).slice(0, 300), (performance.now() - t).toFixed(0) + "ms"); } };
const mk = async (o = {}) => { const probe = await probeHost(); return { ...probe, ws: new Workspace({ host: probe.host, ...o }) }; };

test("corruption", async () => {
  { const { host, ws } = await mk();
    await ws.writeFile("/a.txt", "a".repeat(600_000)); ws.mark("m1"); await ws.writeFile("/b.txt", "small"); ws.mark("m2");
    host.sql("DELETE FROM perdure_file_body WHERE n = 1");
    await T("one chunk missing: read", () => ws.readFile("/a.txt").then((t) => t?.length));
    await T("append", () => ws.appendFile("/a.txt", "x"));
    await T("size", async () => (await ws.stat("/a.txt"))?.size);
    host.sql("DELETE FROM perdure_file_body");
    await T("whole body missing: read", () => ws.readFile("/a.txt").then((t) => t?.length));
    await T("rename", () => ws.rename("/a.txt", "/c.txt"));
    await T("rewrite", () => ws.writeFile("/c.txt", "new"));
    await T("restore m1", async () => ws.restore("m1"));
    await T("read b", () => ws.readFile("/b.txt"));
    await T("diff", () => ws.diffPoints("m1", "m2"));
  }
  { const { host, ws } = await mk();
    await ws.writeFile("/b.txt", "small"); ws.mark("m1"); await ws.writeFile("/b.txt", "small2"); ws.mark("m2");
    host.sql("UPDATE perdure_cell SET value = 'garbage' WHERE key = 'workspace-point:main:m1'");
    await T("bad point: points", async () => ws.points());
    await T("bad point: mark", async () => ws.mark("m3"));
    await T("bad point: mark again", async () => ws.mark("m3"));
    await T("bad point: restore", async () => ws.restore("m1"));
    await T("bad point: restore m2", async () => ws.restore("m2"));
    await T("bad point: write", () => ws.writeFile("/c", "x"));
    host.sql("UPDATE perdure_cell SET value = 'garbage' WHERE key = 'workspace:main'");
    await T("bad counter: read", () => ws.readFile("/b.txt"));
    await T("bad counter: write", () => ws.writeFile("/b.txt", "y"));
    await T("bad counter: mark", async () => ws.mark("m4"));
    await T("bad counter: restore m2", async () => ws.restore("m2"));
    await T("bad counter: info", async () => ws.info());
    console.log(host.sql("SELECT until, since, parent, name FROM perdure_file"), host.sql("SELECT key, value FROM perdure_cell"));
  }
  { const { host, ws } = await mk();
    await ws.writeFileBytes("/big.bin", new Uint8Array(2_000_000).fill(7));
    const [cell] = host.sql<{ key: string; value: string }>("SELECT key, value FROM perdure_cell WHERE key LIKE 'workspace-blob:%'");
    await host.blobs.delete(cell!.value);
    await T("large bytes gone: read", () => ws.readFileBytes("/big.bin").then((b) => b.length));
    await T("large gone: write the same again", () => ws.writeFileBytes("/big.bin", new Uint8Array(2_000_000).fill(7)));
    await T("large gone: read", () => ws.readFileBytes("/big.bin").then((b) => b.length));
    await T("large gone: rm", () => ws.rm("/big.bin"));
    await T("large gone: write the same again", () => ws.writeFileBytes("/big.bin", new Uint8Array(2_000_000).fill(7)));
    await T("large gone: read", () => ws.readFileBytes("/big.bin").then((b) => b.length));
  }
}, 60_000);

test("1000 files", async () => {
  const { host, ws } = await mk();
  await T("write 1000", async () => { for (let i = 0; i < 1000; i++) await ws.writeFile(`/d${i % 20}/f${i}.txt`, `file ${i}\n`.repeat(20)); });
  await T("mark", async () => ws.mark("m0"));
  await T("200 marks with a change each", async () => { for (let i = 1; i <= 250; i++) { await ws.writeFile(`/d1/f1.txt`, `v ${i}`); ws.mark(`m${i}`); } });
  await T("rm all", async () => ws.rm("/", { recursive: true }));
  await T("restore", async () => { const r = ws.restore("m250"); return [r.created.length, r.updated.length, r.deleted.length]; });
  await T("restore 0", async () => { const r = ws.restore(0); return [r.created.length, r.updated.length, r.deleted.length]; });
  await T("restore m250", async () => { const r = ws.restore("m250"); return [r.created.length, r.updated.length, r.deleted.length]; });
  await T("rename dir", async () => ws.rename("/d1", "/e1"));
  await T("info", () => ws.info());
  await T("diff", async () => (await ws.diffPoints("m250")).length);
  console.log(host.sql("SELECT count(*) n FROM perdure_file"));
  await T("deleteAll", () => ws.deleteAll());
  console.log(host.sql("SELECT count(*) n FROM perdure_file"), host.sql("SELECT count(*) n FROM perdure_file_body"), host.sql("SELECT key FROM perdure_cell WHERE key LIKE 'workspace%'"));
}, 60_000);

test("limits and streams", async () => {
  const { host, ws } = await mk();
  for (const n of [8191, 8192, 8193, 1_499_999, 1_500_000, 1_500_001]) {
    const b = new Uint8Array(n).fill(n % 251);
    await ws.writeFileBytes(`/f${n}`, b);
    expect(Buffer.compare(Buffer.from(await ws.readFileBytes(`/f${n}`)), Buffer.from(b))).toBe(0);
  }
  await T("100MB", () => ws.writeFileBytes("/max", new Uint8Array(100_000_000)));
  await T("100MB+1", () => ws.writeFileBytes("/max1", new Uint8Array(100_000_001)));
  await T("append over", () => ws.appendFile("/max", "x"));
  await T("size", async () => (await ws.stat("/max"))?.size);
  await T("rm max", () => ws.rm("/max"));
  await T("stream errors in the middle", () => { let n = 0; return ws.writeFileStream("/s", new ReadableStream({ pull(c) { if (n++ > 5) c.error(new Error("cut")); else c.enqueue(new Uint8Array(1000)); } })); });
  await T("exists s", () => ws.exists("/s"));
  await T("stream of strings", () => ws.writeFileStream("/s", new ReadableStream({ start(c) { c.enqueue("abc"); c.close(); } }) as never));
  await T("exists s", () => ws.exists("/s"));
  await T("endless stream", () => { let cancelled = false; return ws.writeFileStream("/s", new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(5_000_000)); }, cancel() { cancelled = true; console.log("cancelled", cancelled); } })); });
  const r = await ws.readFileStream("/f1500001");
  await T("cancel read stream", async () => r!.cancel());
  await T("sweep", () => ws.sweep());
  await T("put fails", async () => {
    const bad = new Workspace({ host, namespace: "bad", largeFiles: { put: async () => { throw new Error("disk full"); }, get: async () => undefined, delete: async () => {} } });
    await bad.writeFile("/x", "old");
    await T("  write large", () => bad.writeFileBytes("/x", new Uint8Array(2_000_000)));
    return [await bad.readFile("/x"), host.sql("SELECT key FROM perdure_cell WHERE key LIKE 'workspace-large:bad%'")];
  });
}, 60_000);

test("side by side", async () => {
  const { ws } = await mk();
  await ws.writeFile("/n.txt", "");
  await Promise.all(Array.from({ length: 15 }, (_, i) => ws.appendFile("/n.txt", `${i}\n`)));
  expect((await ws.readFile("/n.txt"))!.trim().split("\n").length).toBe(15);
  await ws.writeFile("/big.txt", "x".repeat(20_000));
  await T("50 appends to a big file side by side", () => Promise.all(Array.from({ length: 50 }, (_, i) => ws.appendFile("/big.txt", `${i}\n`))));
  console.log("lines", (await ws.readFile("/big.txt"))!.length);
  await ws.writeFileBytes("/huge.txt", new Uint8Array(1_600_000).fill(65));
  await T("30 appends to a large file side by side", () => Promise.all(Array.from({ length: 30 }, (_, i) => ws.appendFile("/huge.txt", `${i}\n`))));
  await T("size", async () => (await ws.stat("/huge.txt"))?.size);
  // rename side by side
  await T("renames", () => Promise.allSettled([ws.rename("/n.txt", "/o.txt"), ws.rename("/n.txt", "/p.txt"), ws.appendFile("/n.txt", "q")]).then((r) => r.map((x) => x.status)));
  await T("glob", async () => (await ws.glob("/*")).map((e) => e.path));
}, 60_000);
