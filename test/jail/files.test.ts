import { mkdtemp, readdir, readFile, rm, writeFile, chmod } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { MemoryFiles } from "../../src/toolbox/sandbox/memory-files.ts";
import { createProcessSandbox } from "../../src/toolbox/sandbox/process/process-sandbox.ts";
import { diskFolder } from "../support/run-folder.ts";
import { jailed, printed, sandbox } from "./jailed.ts";

afterAll(async () => await sandbox.dispose());

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const contents = (fs: MemoryFiles) => Object.fromEntries(fs.files().map(({ path, bytes }) => [path, text(bytes)]));
const bash = async (fs: MemoryFiles, code: string, mode: "read" | "read-write" = "read-write") =>
  await sandbox.run({ language: "bash", code, can: { files: { fs, mode } } });

test(
  "only what changed comes back: new, changed, deleted, moved, modes, folders, links",
  jailed(async () => {
    const fs = new MemoryFiles({
      files: { "/same": "same", "/old": "old", "/gone": "x", "/d/e/f": "deep", "/odd 'name'": "q" },
    });
    await fs.symlink("/same", "/link");
    const wrote: string[] = [];
    const write = fs.writeFileBytes.bind(fs);
    fs.writeFileBytes = async (path, bytes) => {
      wrote.push(path);
      await write(path, bytes);
    };
    const result = await bash(
      fs,
      `set -e; cat link; cat "odd 'name'"; touch same; echo new > old; rm gone; mv d moved; mkdir -p a/b; echo 1 > a/b/c
     printf '#!/bin/sh\\necho ran' > run; chmod +x run; ./run; ln -s a/b/c relative; ln -s /workspace/same absolute; printf '\\0\\377' > bytes`,
    );
    expect(printed(result, "stderr")).toBe("");
    expect(printed(result)).toBe("sameqran");
    expect(contents(fs)).toMatchObject({ "/same": "same", "/old": "new\n", "/moved/e/f": "deep", "/a/b/c": "1\n" });
    expect(Object.keys(contents(fs))).not.toContain("/gone");
    expect(await fs.lstat("/d")).toBeNull();
    expect(await fs.readFileBytes("/bytes")).toEqual(new Uint8Array([0, 255]));
    expect([await fs.readlink("/relative"), await fs.readlink("/absolute"), await fs.readlink("/link")]).toEqual([
      ...["a/b/c", "/same", "/same"],
    ]);
    expect(((await fs.stat("/run"))?.mode ?? 0) & 0o111).toBe(0o111);
    // A file that was only touched is not written again.
    expect(wrote.toSorted()).toEqual(["/a/b/c", "/bytes", "/moved/e/f", "/old", "/run"]);
    expect(result.files).toMatchObject({ conflicts: [], refused: [] });
    expect(result.files?.deleted.toSorted()).toEqual(["/d", "/d/e", "/d/e/f", "/gone"]);
  }),
);

test(
  "a copy to read: nothing comes back, and nothing can be written",
  jailed(async () => {
    const fs = new MemoryFiles({ files: { "/a": "a" } });
    const result = await bash(fs, "cat a; echo b > a; echo c > c; rm a", "read");
    expect(printed(result)).toBe("a");
    expect(printed(result, "stderr").match(/Read-only file system/g)).toHaveLength(3);
    expect(result.files).toBeUndefined();
    expect(contents(fs)).toEqual({ "/a": "a" });
  }),
);

test(
  "links that lead out, pipes, sockets and devices stay in the jail, and are named",
  jailed(async () => {
    const fs = new MemoryFiles({ files: { "/a": "a" } });
    const result = await bash(
      fs,
      `ln -s /etc/passwd out; ln -s ../../../etc/passwd up; mkfifo pipe; mkdir d; ln -s / d/root
     python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'; rm a; ln -s /proc/self/environ a; echo ok`,
    );
    expect(printed(result)).toBe("ok");
    const refused = result.files?.refused.map(({ path }) => path).toSorted();
    expect(refused).toEqual(["/a", "/d/root", "/out", "/pipe", "/sock", "/up"]);
    expect(Object.keys(contents(fs))).toEqual([]);
    for (const path of ["/out", "/up", "/d/root"]) expect(await fs.lstat(path)).toBeNull();
  }),
);

test(
  "what was changed elsewhere meanwhile stays, and the run's version is put beside it",
  jailed(async () => {
    const fs = new MemoryFiles({
      files: { "/both": "1", "/same": "1", "/deleted": "1", "/theirs": "1", "/d/kept": "1" },
    });
    const result = await sandbox.run({
      language: "bash",
      code: `echo go; read answer; echo mine > both; echo agreed > same; rm deleted; rm -r d; echo mine > fresh; cat theirs`,
      stdin: "\n",
      can: { files: { fs, mode: "read-write" } },
      onLog: () => {
        for (const path of ["/both", "/deleted", "/theirs", "/fresh", "/d/new"]) {
          void fs.writeFileBytes(path, new TextEncoder().encode("theirs"));
        }
        void fs.writeFileBytes("/same", new TextEncoder().encode("agreed\n"));
      },
    });
    // The copy is the run's own.
    expect(printed(result)).toBe("go\n1");
    expect(contents(fs)).toEqual({
      "/both": "theirs",
      "/both.conflict": "mine\n",
      "/same": "agreed\n",
      "/deleted": "theirs",
      "/theirs": "theirs",
      "/fresh": "theirs",
      "/fresh.conflict": "mine\n",
      "/d/new": "theirs",
    });
    expect(result.files?.conflicts.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { path: "/both", kept: "/both.conflict" },
      { path: "/d", kept: undefined },
      { path: "/deleted", kept: undefined },
      { path: "/fresh", kept: "/fresh.conflict" },
    ]);
  }),
);

test(
  "bounds: what is too much does not go in, and does not come out, and is said",
  jailed(async () => {
    const small = createProcessSandbox({ checkout: { files: 20, bytes: 100_000, fileBytes: 50_000 }, diskMB: 8 });
    const run = async (fs: MemoryFiles, code: string) =>
      await small.run({ language: "bash", code, can: { files: { fs, mode: "read-write" } } });
    try {
      const many = new MemoryFiles({ files: Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`/${n}`, ""])) });
      expect(await run(many, "true")).toMatchObject({
        status: "error",
        error: { message: expect.stringContaining("more than 20") as unknown },
      });
      const large = new MemoryFiles({ files: { "/large": "x".repeat(60_000) } });
      expect(await run(large, "true")).toMatchObject({
        status: "error",
        error: { message: expect.stringContaining("/large has 60000 bytes") as unknown },
      });
      const fs = new MemoryFiles();
      const one = await run(fs, "head -c 60000 /dev/zero > big; echo small > small");
      expect(one.files).toMatchObject({ written: ["/small"], refused: [{ path: "/big" }] });
      const all = await run(fs, "for n in 1 2 3; do head -c 40000 /dev/zero > $n; done");
      expect(all.files).toMatchObject({ written: [], refused: [{ path: "/" }] });
      const count = await run(fs, "for n in $(seq 50); do : > f$n; done");
      expect(count.files).toMatchObject({
        written: [],
        refused: [{ path: "/", reason: expect.stringContaining("more than 20") as unknown }],
      });
      expect(Object.keys(contents(fs))).toEqual(["/small"]);
      // One file stops at the bound; many are stopped by whoever looks on.
      const disk = await run(fs, "head -c 20000000 /dev/zero > big; wc -c < big");
      expect(Number(printed(disk))).toBeLessThanOrEqual(8 << 20);
      expect(await run(fs, "n=0; while :; do n=$((n+1)); head -c 4000000 /dev/zero > f$n; done")).toMatchObject({
        status: "limit",
        limit: "output",
      });
    } finally {
      await small.dispose();
    }
  }),
);

test(
  "a real directory, to read or to write",
  jailed(async () => {
    const path = await mkdtemp(join(diskFolder(), "perdure-real-"));
    await chmod(path, 0o777);
    await writeFile(join(path, "a"), "real");
    const open = (mode: "read" | "read-write") => createProcessSandbox({ directory: { path, mode } });
    const [reading, writing] = [open("read"), open("read-write")];
    try {
      expect(printed(await reading.run({ language: "bash", code: "pwd; cat a; echo b > b || echo refused" }))).toBe(
        "/workspace\nrealrefused",
      );
      await writing.run({ language: "bash", code: "echo b > b" });
      expect(await readFile(join(path, "b"), "utf8")).toBe("b\n");
      await expect(
        writing.run({ language: "bash", code: "true", can: { files: { fs: new MemoryFiles(), mode: "read" } } }),
      ).rejects.toMatchObject({ code: "bad_input" });
    } finally {
      await Promise.all([reading.dispose(), writing.dispose(), rm(path, { recursive: true })]);
    }
  }),
);

test(
  "nothing stays on the disk, however deep, locked or strangely named it is",
  jailed(async () => {
    const folder = await mkdtemp(join(diskFolder(), "leftovers-"));
    await chmod(folder, 0o755);
    const own = createProcessSandbox({ temporary: folder });
    try {
      const code = `n=$(printf 'a%.0s' $(seq 200)); for i in $(seq 60); do mkdir $n && cd $n; done
        cd /workspace; printf x > "$(printf 'bad\\377name')"; mkdir -p locked/inner; chmod 000 locked/inner locked`;
      await own.run({ language: "bash", code, can: { files: { fs: new MemoryFiles(), mode: "read-write" } } });
      const [home = ""] = await readdir(folder);
      expect((await readdir(join(folder, home))).filter((name) => name.includes("-"))).toEqual([]);
    } finally {
      await own.dispose();
    }
    expect(await readdir(folder)).toEqual([]);
    await rm(folder, { recursive: true });
  }),
);
