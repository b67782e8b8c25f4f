import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { type BashRunRequest, createBashSandbox } from "../../src/toolbox/sandbox/bash/bash-sandbox.ts";
import { MemoryFiles } from "../../src/toolbox/sandbox/memory-files.ts";
import type { RunResult } from "../../src/toolbox/sandbox/sandbox.ts";
import { watchHost } from "./host-watch.ts";

const sandbox = createBashSandbox({ workers: 1 });
const folder = mkdtempSync(join(tmpdir(), "perdure-shell-"));
const secretFile = join(folder, "secret.txt");
const SECRET = "the-secret-of-the-host";
writeFileSync(secretFile, `${SECRET}\n`);
process.env["PERDURE_SHELL_SECRET"] = SECRET;
afterAll(async () => {
  delete process.env["PERDURE_SHELL_SECRET"];
  await sandbox.dispose();
  rmSync(folder, { recursive: true });
});

/** Bounds, not speeds: a busy machine with two processors must keep them. */
const MAX_LAG_MS = 2_000;
const MAX_GROWN_MB = 1_200;

const run = (code: string, more: Partial<BashRunRequest> = {}): Promise<RunResult> =>
  sandbox.run({ language: "bash", code, limits: { wallMs: 10_000 }, ...more });

function all(result: RunResult): string {
  return result.logs.map((line) => line.text).join("") + ("message" in result ? result.message : "");
}

async function stillWorks(): Promise<void> {
  expect(all(await run("echo $((6 * 7))"))).toBe("42\n");
}

const bombs: Record<string, string> = {
  "endless loop": "while true; do :; done",
  "endless until": "until false; do x=1; done",
  "endless for": "for ((;;)); do :; done",
  "loop in a subshell": "(while true; do :; done)",
  "loop in a child shell": "bash -c 'while true; do :; done'",
  recursion: "f() { f; }; f",
  "mutual recursion": "f() { g; }; g() { f; }; f",
  "fork bomb": "f() { f | f & }; f",
  "recursion by eval": 'f=\'eval "$f"\'; eval "$f"',
  "recursion by source": "echo 'source /tmp/self' > /tmp/self; source /tmp/self",
  "substitution nesting": "f() { echo $(f); }; f",
  "string doubling": "x=a; for i in {1..40}; do x=$x$x; done; echo ${#x}",
  "array growth": 'a=(1 2 3 4 5 6 7 8); for i in {1..30}; do a+=("${a[@]}"); done; echo ${#a[@]}',
  "brace product": "echo {1..100}{1..100}{1..100}{1..100}",
  "brace range": "echo {1..100000000}",
  "awk loop": "awk 'BEGIN { while (1) {} }'",
  "awk string": "awk 'BEGIN { x = \"a\"; for (i = 0; i < 40; i++) x = x x; print length(x) }'",
  "sed loop": "echo x | sed ':a;ba'",
  "jq range": "jq -n '[range(1e9)]'",
  "jq recursion": "jq -n 'def f: f | f; f'",
  "printf width": "printf '%999999999d' 1",
  "printf repeat": "printf '%.0sxxxxxxxxxx' {1..9999}{1..9999}",
  seq: "seq 1 1000000000",
  "output flood": 'x=$(printf "%1000s" x); for i in {1..5000}; do echo "$x"; done',
  "arithmetic depth": "x=x; echo $((x))",
  "deep parentheses": 'echo $(printf "(%.0s" {1..9000})',
  "deep JSON": 'printf "[%.0s" {1..9000} | jq .',
  "file bomb": 'for i in {1..4000}; do head -c 100000 /dev/zero; printf "%100000s" x > /tmp/f$i; done',
  "glob storm": "mkdir -p /tmp/a/b/c/d; ls /tmp/{a,b}*/**/**/**/**/**/*; echo /**/**/**/**/**/**",
};

/** Those that the shell itself refuses in time, and goes on. */
const harmless = new Set(["arithmetic depth", "glob storm", "array growth"]);

test.each(Object.entries(bombs))("is stopped, and the host goes on: %s", async (name, script) => {
  const { value, lagMs, grownMB } = await watchHost(() => run(script, { limits: { wallMs: 600 } }));
  expect(harmless.has(name) ? ["ok", "limit"] : ["limit"]).toContain(value.status);
  expect(lagMs).toBeLessThan(MAX_LAG_MS);
  expect(grownMB).toBeLessThan(MAX_GROWN_MB);
  await stillWorks();
});

const bigFile: Record<string, string> = {
  "sed -E": "sed -E 's/(a|b)+(c|d)*x?/Y/g' /big.txt > /dev/null",
  "grep -cE": "grep -cE '(x+x+)+y|[0-9]{3,}.*z' /big.txt",
  "sort and uniq": "sort /big.txt | uniq -c | sort -rn | head -3",
  tr: "tr a-z A-Z < /big.txt | tr A-Z a-z | wc -c",
};

test.each(Object.entries(bigFile))(
  "a big file does not hold up the host, and ends at the deadline: %s",
  async (_n, script) => {
    const line = "the quick brown fox abcdabcd jumps over 12345 lazy dogs\n";
    const big = new MemoryFiles({ files: { "/big.txt": line.repeat(Math.ceil(9.4e6 / line.length)) } });
    const { value, lagMs, ms, grownMB } = await watchHost(() =>
      run(script, { can: { files: { fs: big, mode: "read" } }, limits: { wallMs: 900 } }),
    );
    // Some are quick enough, or too much for a limit, on some machines: what counts is that the host does not wait.
    expect(["ok", "limit"]).toContain(value.status);
    expect(lagMs).toBeLessThan(MAX_LAG_MS);
    expect(grownMB).toBeLessThan(MAX_GROWN_MB);
    expect(ms).toBeLessThan(10_000);
    await stillWorks();
  },
);

test("a heap that fills up ends the run, not the host", async () => {
  const small = createBashSandbox({ workers: 1, memoryMB: 64 });
  const script = 'a=(); x=$(printf "%9000000s" x); for i in {1..200}; do a[$i]="$x$i"; done; echo ${#a[@]}';
  const { value, lagMs } = await watchHost(() =>
    small.run({ language: "bash", code: script, limits: { wallMs: 8_000 } }),
  );
  expect(value).toMatchObject({ status: "limit" });
  expect(lagMs).toBeLessThan(MAX_LAG_MS);
  expect(all(await small.run({ language: "bash", code: "echo 42" }))).toBe("42\n");
  await small.dispose();
});

const up = "../".repeat(20);
const reads: Record<string, string> = {
  cat: `cat ${secretFile}`,
  "dots from the root": `cat /${up}${secretFile}`,
  "dots from a directory": `mkdir -p /a/b; cd /a/b; cat ${up}${secretFile.slice(1)}`,
  "a link to it": `ln -s ${secretFile} /l; cat /l`,
  "a link to the root": `ln -s / /r; cat /r${secretFile}`,
  "a link upwards": `ln -s ${up} /u; cat /u${secretFile}`,
  "a link in /tmp": `ln -s ${secretFile} /tmp/l; cat /tmp/l`,
  "links one after the other": `ln -s ${folder} /x; ln -s /x/secret.txt /y; cat /y`,
  "a hard link": `ln ${secretFile} /h; cat /h`,
  "through /proc/self/root": `cat /proc/self/root${secretFile}`,
  "through /proc/1/root": `cat /proc/1/root${secretFile}`,
  "through /proc/self/cwd": `cat /proc/self/cwd/${up}${secretFile}`,
  "the environment in /proc": "cat /proc/self/environ /proc/1/environ /proc/*/environ",
  "the environment": "env; export -p; set; declare -p; printenv",
  redirection: `cat < ${secretFile}; read -r x < ${secretFile}; echo "$x"`,
  "command substitution": `echo "$(<${secretFile})"; mapfile -t m < ${secretFile}; echo "\${m[@]}"`,
  source: `source ${secretFile}; . ${secretFile}; bash ${secretFile}`,
  "a file descriptor": `exec 3<${secretFile}; cat <&3; cat /dev/fd/3`,
  glob: `echo ${folder}/*; ls -la ${folder}; find ${folder}; cat ${folder.slice(0, 6)}*/secret.txt`,
  awk: `awk 'BEGIN { while ((getline line < "${secretFile}") > 0) print line }'`,
  "awk system": `awk 'BEGIN { system("cat ${secretFile}"); "cat ${secretFile}" | getline x; print x }'`,
  sed: `echo x | sed 'r ${secretFile}'; echo x | sed 's/x/cat/e'; sed -n p ${secretFile}`,
  jq: `jq -n --rawfile f ${secretFile} '$f'; jq -n --slurpfile f ${secretFile} '$f'; jq -n 'env, $ENV'`,
  "jq input file": `jq -R . ${secretFile}; jq -n 'input_filename, $__prog_args'; jq -L ${folder} -n 'include "secret"; 1'`,
  tar: `tar cf - ${secretFile} | tar xOf -; tar -C ${folder} -cf /t.tar . && tar xOf /t.tar`,
  "tar that unpacks upwards": `cd /tmp; mkdir -p d; echo evil > d/x; tar cPf t.tar ../../../../d/x 2>&1; tar xPf t.tar; cat ${secretFile}`,
  "copy, diff and others": `cp ${secretFile} /c; cat /c; diff ${secretFile} /dev/null; base64 ${secretFile}; od -c ${secretFile}; head ${secretFile}; rg . ${secretFile}; grep . ${secretFile}; xxd ${secretFile}; strings ${secretFile}`,
  xargs: `echo ${secretFile} | xargs cat; find / -name secret.txt -exec cat {} +`,
  "sqlite attach": `sqlite3 :memory: "ATTACH '${secretFile}' AS s; SELECT * FROM s.sqlite_master"`,
  "sqlite readfile": `sqlite3 :memory: "SELECT readfile('${secretFile}')"; sqlite3 :memory: ".read ${secretFile}"; sqlite3 ${secretFile} .schema`,
  "sqlite import": `sqlite3 :memory: ".import ${secretFile} t" "select * from t"; sqlite3 :memory: ".shell cat ${secretFile}"`,
  "sqlite extension": `sqlite3 :memory: "SELECT load_extension('${secretFile}')"; sqlite3 :memory: ".load ${secretFile}"`,
  "file URLs": `curl file://${secretFile}; wget file://${secretFile}`,
  "other interpreters": `js-exec -c "require('fs').readFileSync('${secretFile}','utf8')"; node -e 1; perl -e 1; ruby -e 1; sh ${secretFile}`,
  "yq, xan": `yq . ${secretFile}; xan cat rows ${secretFile}; csvlook ${secretFile}`,
};

test.each(Object.entries(reads))("finds nothing of the host: %s", async (_name, script) => {
  const fs = new MemoryFiles({ files: { "/own.txt": "own" } });
  const result = await run(script, { can: { files: { fs, mode: "read-write" } } });
  expect(["ok", "error"]).toContain(result.status);
  expect(all(result)).not.toContain(SECRET);
  expect(all(result)).not.toContain(Buffer.from(SECRET).toString("base64").slice(0, 16));
});

test("nothing that it prints names a place of the host", async () => {
  const result = await run(
    "python3 -c 'import os, sys; print(os.environ, sys.path, sys.argv, sys.executable)'; env; which ls; cat /nope; ls /proc",
  );
  for (const place of [process.cwd(), "node_modules", folder, process.execPath])
    expect(all(result)).not.toContain(place);
});

const writes: Record<string, string> = {
  redirect: "echo x > /own.txt",
  append: "echo x >> /own.txt",
  "new file": "echo x > /new.txt",
  tee: "echo x | tee /own.txt",
  remove: "rm -rf /own.txt /folder",
  move: "mv /own.txt /moved.txt",
  "move over it": "echo x > /tmp/x; mv /tmp/x /own.txt",
  copy: "cp /own.txt /copy.txt",
  mkdir: "mkdir -p /made/deep",
  link: "ln -s /own.txt /link",
  chmod: "chmod 777 /own.txt",
  touch: "touch -d 2001-01-01 /own.txt",
  "sed -i": "sed -i s/own/other/ /own.txt",
  "through a link in /tmp": "ln -s /own.txt /tmp/l; echo x > /tmp/l",
  "through dots": "cd /tmp; echo x > ../own.txt",
  truncate: ": > /own.txt",
  gzip: "gzip /own.txt",
  sqlite: "sqlite3 /own.db 'create table t (a)'",
  split: "cd /; split -l 1 /own.txt part",
  python: "python3 -c \"open('/own.txt', 'w').write('x')\"",
};

test("files that may only be read stay as they are, by every way there is", async () => {
  const fs = new MemoryFiles({ files: { "/own.txt": "own\n", "/folder/x": "x" } });
  const before = JSON.stringify(fs.files().map(({ path, bytes }) => [path, [...bytes]]));
  const stat = await fs.stat("/own.txt");
  for (const [name, script] of Object.entries(writes)) {
    const result = await run(script, { can: { files: { fs, mode: "read" } } });
    expect(["ok", "error"], name).toContain(result.status);
    expect(JSON.stringify(fs.files().map(({ path, bytes }) => [path, [...bytes]])), name).toBe(before);
  }
  expect(await fs.stat("/own.txt")).toEqual(stat);
  expect(await fs.readDir("/")).toHaveLength(2);
  expect(all(await run("cat /own.txt", { can: { files: { fs, mode: "read" } } }))).toBe("own\n");
});

test("a redirect into files that may only be read is an error that says so", async () => {
  const files = { fs: new MemoryFiles(), mode: "read" } as const;
  const result = await run("echo x > /new.txt", { can: { files } });
  expect(JSON.stringify(result)).toContain("read-only file system");
});

test("names of JavaScript's own are names like others", async () => {
  const script = `
    __proto__=1; constructor=2; prototype=3; toString=4; hasOwnProperty=5
    echo "$__proto__$constructor$prototype$toString$hasOwnProperty"
    declare -A m; m[__proto__]=a; m[constructor]=b; m[toString]=c; echo "\${m[__proto__]}\${m[constructor]}\${m[toString]}\${#m[@]}"
    echo "[\${valueOf}][\${m[valueOf]}]"
    __proto__() { echo called; }; __proto__
    echo '{"__proto__":{"polluted":1}}' | jq -c '.__proto__, ({} | .polluted)'
    export __proto__=6; bash -c 'echo $__proto__'
    awk 'BEGIN { a["__proto__"] = 7; print a["__proto__"], a["constructor"] }'
    mkdir /__proto__; echo 8 > /__proto__/constructor; cat /__proto__/constructor`;
  const result = await run(script);
  expect(all(result)).toBe('12345\nabc3\n[][]\ncalled\n{"polluted":1}\nnull\n6\n7 \n8\n');
  expect(all(await run('echo "$polluted$__proto__"; declare -A m; echo "${m[polluted]}"'))).toBe("\n\n");
});

test("without a network there is no curl, and no way to a socket", async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.end("reached");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const script = `
    for c in curl wget nc ncat telnet ssh dig nslookup ping; do command -v $c && echo "has $c"; done
    echo x > /dev/tcp/127.0.0.1/${port}
    cat < /dev/udp/127.0.0.1/${port}
    exec 5<>/dev/tcp/127.0.0.1/${port}; cat <&5
    python3 -c "
import socket, urllib.request
for ask in [lambda: socket.create_connection(('127.0.0.1', ${port}), 2), lambda: urllib.request.urlopen('http://127.0.0.1:${port}/', timeout=2), lambda: socket.getaddrinfo('example.com', 80)]:
    try: print('reached', ask())
    except OSError as error: print('refused', type(error).__name__)
"
    curl http://127.0.0.1:${port}/`;
  const result = await run(script);
  server.close();
  expect(connections).toBe(0);
  expect(all(result)).not.toMatch(/has |reached .*socket|reached$/m);
  expect(all(result)).toContain("curl: command not found");
});

test("with a network every request is asked of it, and its refusals are the script's to read", async () => {
  const asked: string[] = [];
  const network = {
    async fetch(url: string, request: { method?: string; body?: Uint8Array | string } = {}) {
      asked.push(`${request.method} ${url} ${String(request.body ?? "")}`);
      if (!url.startsWith("https://api.example.com/")) throw new Error(`a host path ${secretFile}`);
      const body = new TextEncoder().encode(`{"ok":true}`);
      return { status: 200, headers: { "content-type": "application/json" }, url, body };
    },
    listen: () => Promise.reject(new Error("not here")),
  };
  const can = { network };
  const good = await run("curl -s -X POST -d a=1 https://api.example.com/x | jq .ok", { can });
  expect(all(good)).toBe("true\n");
  const bad = await run("curl -sS http://169.254.169.254/latest; curl -sS file:///etc/passwd; curl -sS ftp://x/y", {
    can,
  });
  expect(bad).toMatchObject({ status: "ok" });
  expect(all(bad)).not.toContain(folder);
  expect(asked[0]).toBe("POST https://api.example.com/x a=1");
  expect(good.stats.toolCalls).toBe(1);
  const many = await run("for i in 1 2 3 4; do curl -s https://api.example.com/$i > /dev/null; done", {
    can,
    limits: { toolCalls: 2 },
  });
  expect(many.status).toBe("ok");
  expect(asked.filter((one) => /\/[1-4] /.test(one))).toHaveLength(2);
});
