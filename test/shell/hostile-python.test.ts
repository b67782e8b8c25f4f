import { once } from "node:events";
import { connect, createServer } from "node:net";
import { afterAll, expect, test } from "vitest";
import { createBashSandbox } from "../../src/toolbox/sandbox/bash/bash-sandbox.ts";
import { MemoryFiles } from "../../src/toolbox/sandbox/memory-files.ts";
import type { RunResult } from "../../src/toolbox/sandbox/sandbox.ts";
import { watchHost } from "./host-watch.ts";

const sandbox = createBashSandbox({ workers: 1 });
afterAll(() => sandbox.dispose());

/** Bounds, not speeds. */
const MAX_LAG_MS = 2_000;
const MAX_GROWN_MB = 800;

const run = (code: string, wallMs = 25_000, outputBytes = 200_000): Promise<RunResult> =>
  sandbox.run({
    language: "python",
    code,
    limits: { wallMs, outputBytes },
    can: { files: { fs: new MemoryFiles({ files: { "/own.txt": "own" } }), mode: "read" } },
  });

function printed(result: RunResult): string {
  return result.logs.map((line) => line.text).join("");
}

/** Each is tried by itself; what works is printed. Starting Python takes long, so all are tried in one go. */
const attempts: Record<string, string> = {
  "import js": "import js; js.process",
  "import pyodide": "import pyodide",
  "import ctypes": "import ctypes; ctypes.CDLL(None)",
  "import _ctypes": "import _ctypes; _ctypes.dlopen('', 0)",
  "import cffi": "import cffi",
  "os.system": "import os; assert os.system('echo x') == 0",
  "os.popen": "import os; os.popen('echo x').read()",
  "os.fork": "import os; os.fork()",
  "os.execv": "import os; os.execv('/bin/sh', ['sh'])",
  "os.kill": "import os, signal; assert os.getppid() > 1; os.kill(os.getppid(), signal.SIGTERM)",
  subprocess: "import subprocess; subprocess.run(['ls'])",
  multiprocessing: "import multiprocessing; multiprocessing.Process(target=print).start()",
  "read /etc/passwd": "open('/etc/passwd').read()",
  "read through dots": "open('/host/../../../../etc/passwd').read()",
  "read with os.open": "import os; os.read(os.open('/etc/passwd', os.O_RDONLY), 10)",
  "read with io": "import io; io.FileIO('/etc/passwd').read()",
  "read with pathlib": "import pathlib; pathlib.Path('/etc/passwd').read_text()",
  "read a link": "import os; os.symlink('/etc/passwd', '/tmp/l'); open('/tmp/l').read()",
  "read /proc/self/environ": "assert len(open('/proc/self/environ').read()) > 0",
  "read /proc/1/root": "open('/proc/1/root/etc/passwd').read()",
  "list /proc": "import os; assert any(name.isdigit() and int(name) > 100 for name in os.listdir('/proc'))",
  "list /home": "import os; assert os.listdir('/home')[0] != 'web_user'",
  "write into what may only be read": "open('/own.txt', 'w').write('x')",
  "remove what may only be read": "import os; os.remove('/own.txt')",
  "rename what may only be read": "import os; os.rename('/own.txt', '/new.txt')",
  "make a directory there": "import os; os.mkdir('/made')",
  "a TCP socket": "import socket; socket.create_connection(('127.0.0.1', 22), 1)",
  "a UDP socket":
    "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', 53)); s.recv(1)",
  "a unix socket": "import socket; socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')",
  urllib: "import urllib.request; urllib.request.urlopen('http://127.0.0.1/')",
  "the shell's own HTTP": "import jb_http; assert jb_http.get('http://127.0.0.1/').status_code == 200",
  "a native module":
    "import importlib.util as u; u.module_from_spec(u.spec_from_file_location('m', '/own.txt', loader=__import__('importlib.machinery').machinery.ExtensionFileLoader('m', '/own.txt')))",
  mmap: "import mmap, os; mmap.mmap(os.open('/dev/mem', os.O_RDONLY), 1)",
  pip: "import pip",
};

test("every way out of Python is closed", async () => {
  const source = `import json
worked = []
for name, code in json.loads(${JSON.stringify(JSON.stringify(attempts))}).items():
    try:
        exec(code, {})
        worked.append(name)
    except BaseException:
        pass
print(json.dumps(worked))`;
  const result = await run(source);
  expect(result, printed(result)).toMatchObject({ status: "ok", exitCode: 0 });
  expect(JSON.parse(printed(result))).toEqual([]);
});

test("a socket that listens ends the interpreter, and nothing listens on the host", async () => {
  const free = createServer().listen(0, "127.0.0.1");
  await once(free, "listening");
  const address = free.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  free.close();
  await once(free, "close");
  const listen = `import socket, time
s = socket.socket()
s.bind(("127.0.0.1", ${port}))
s.listen()
time.sleep(2)
print("listened")`;
  let reached = false;
  const knock = setInterval(() => {
    const socket = connect(port, "127.0.0.1", () => {
      reached = true;
      socket.destroy();
    }).on("error", () => {});
  }, 100);
  const result = await run(listen);
  clearInterval(knock);
  expect(reached).toBe(false);
  expect(result).toMatchObject({ status: "ok", exitCode: 1 });
  expect(printed(result)).not.toContain("listened");
});

test("its memory is bounded, and the bound is an error that it can catch", async () => {
  const source = `kept = []
try:
    while True: kept.append(bytearray(8 << 20))
except MemoryError:
    print("full", len(kept) * 8)
    kept = None
try:
    print(len("x" * (1 << 30)))
except MemoryError:
    print("full again")
`;
  const { value, lagMs, grownMB } = await watchHost(() => run(source));
  expect(value).toMatchObject({ status: "ok", exitCode: 0 });
  const [, megabytes] = /^full (\d+)\nfull again\n$/.exec(printed(value)) ?? [];
  expect(Number(megabytes)).toBeLessThan(128);
  expect(lagMs).toBeLessThan(MAX_LAG_MS);
  expect(grownMB).toBeLessThan(MAX_GROWN_MB);
});

test("a loop ends at the deadline while the host goes on, and the next run works", async () => {
  const { value, lagMs, ms } = await watchHost(() => run("while True: pass", 3_000));
  expect(value).toMatchObject({ status: "limit", limit: "wall" });
  expect(lagMs).toBeLessThan(MAX_LAG_MS);
  expect(ms).toBeLessThan(15_000);
  expect(printed(await run("print(6 * 7)"))).toBe("42\n");
});

test("recursion, great numbers and floods of output end", async () => {
  const source = `import sys
def f(n): return f(n + 1)
try: f(0)
except RecursionError: sys.stderr.write("recursion ")
try: str(10 ** 10000)
except ValueError: sys.stderr.write("digits")
for _ in range(30): sys.stdout.write("y" * 2_000)`;
  const flood = await run(source, 25_000, 20_000);
  expect(flood).toMatchObject({ status: "limit", limit: "output" });
  expect(printed(flood)).toHaveLength(20_000);
});
