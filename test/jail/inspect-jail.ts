import { expect } from "vitest";
import type { RunResult } from "../../src/toolbox/sandbox/sandbox.ts";

/** What the jail must look like from inside, whoever started it. */
export function expectJail(result: RunResult, text: string): void {
  expect(result).toMatchObject({ status: "ok", exitCode: 0 });
  const found = JSON.parse(text) as Record<string, unknown>;
  const none = "0000000000000000";
  const expected = {
    ids: [1000, 1000, 1000, 1000, expect.toSatisfy((groups: number[]) => groups.every((group) => group !== 0))],
    status: { CapInh: none, CapPrm: none, CapEff: none, CapBnd: none, CapAmb: none, NoNewPrivs: "1", Seccomp: "2" },
    setuid: expect.stringMatching(/^(EPERM|EINVAL)$/),
    hostname: "sandbox",
    environ1: 0,
    // No path of the host, no variable: those are not on any command line.
    cmdline1: expect.not.stringMatching(/bind|setenv|perdure/),
    environment: ["HOME", "LANG", "OLDPWD", "PATH", "PWD", "PYTHONDONTWRITEBYTECODE", "TERM", "TMPDIR", "USER"],
    root: expect.toSatisfy((names: string[]) => names.every((name) => rootNames.includes(name))),
    etc: expect.toSatisfy((names: string[]) => names.every((name) => etcNames.includes(name))),
    processes: expect.toSatisfy((names: string[]) => names.every((name) => /^(bwrap|python3?(\.\d+)?|sh)$/.test(name))),
    descriptors: expect.toSatisfy((links: string[]) => links.every((link) => link === "/dev/null")),
    interfaces: ["lo"],
    writes: expect.toSatisfy((answers: Record<string, string>) =>
      Object.values(answers).every((answer) => ["EROFS", "EACCES", "EPERM", "ENOENT"].includes(answer)),
    ),
    remount: "EPERM",
    calls: {
      ...Object.fromEntries(Object.keys(found.calls as object).map((name) => [name, "EPERM"])),
      ...{ clone3: "ENOSYS", io_uring_setup: "ENOSYS" },
    },
    sockets: {
      ...{ netlink: "EAFNOSUPPORT", packet: "EAFNOSUPPORT", vsock: "EAFNOSUPPORT" },
      ...{ bluetooth: "EAFNOSUPPORT", alg: "EAFNOSUPPORT", raw: "EPERM" },
    },
    network: {
      ...{ metadata: "ENETUNREACH", "metadata v6": expect.stringMatching(/^(ENETUNREACH|EADDRNOTAVAIL)$/) },
      ...{ public: "ENETUNREACH", dns: "ENETUNREACH", host: "ECONNREFUSED", abstract: "ECONNREFUSED" },
    },
    tmp: [expect.toSatisfy((megabytes: number) => megabytes <= 64), "ENOSPC"],
    shm: [expect.toSatisfy((megabytes: number) => megabytes <= 16), "ENOSPC"],
    forks: [expect.toSatisfy((made: number) => made > 10 && made < 64), "EAGAIN"],
    kill: expect.stringMatching(/^(allowed|EPERM)$/),
  };
  expect(found).toEqual(expected);
}

const rootNames = [
  "bin",
  "dev",
  "etc",
  "lib",
  "lib32",
  "lib64",
  "libx32",
  "opt",
  "proc",
  "sandbox",
  "sbin",
  "tmp",
  "usr",
];
const etcNames = [
  ...["alternatives", "ca-certificates", "fonts", "group", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"],
  ...["localtime", "magic", "mime.types", "nsswitch.conf", "passwd", "pki", "resolv.conf", "ssl"],
];
