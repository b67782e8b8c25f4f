import { chmod, chown, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { JAIL_CODE, JAIL_EGRESS } from "../../process/node/jail-paths.ts";
import type { Machine } from "../../process/node/machine.ts";
import { firstProcessIn, leaveRootWords } from "../../process/node/start-jail.ts";
import { watchJail } from "../../process/node/watch.ts";
import { bubblewrapArguments, prlimitArguments, shellWord } from "../../process/profile.ts";
import type { ChromiumProgram } from "./find-chromium.ts";

/** A program for Playwright to start: Chromium, with the jail around it. */
export type BrowserJail = Awaited<ReturnType<typeof makeBrowserJail>>;

/** Sessions of one browser: each has its own port in the jail. */
export const SLOTS = 8;
const FIRST_PORT = 3128;
const MB = 1 << 20;
const INFO_FD = 7;
const ARGUMENTS_FD = 8;
const SECCOMP_FD = 9;
const BROWSER_FOLDER = "/browser";

/** The proxy of a session, as the browser in the jail sees it. */
export function jailProxy(slot: number): string {
  return `http://127.0.0.1:${FIRST_PORT + slot}`;
}

/** Writes what the start of a jailed browser needs. */
export async function makeBrowserJail(machine: Machine, program: ChromiumProgram) {
  const { builder, socat, bash } = machine;
  const folder = join(builder.folder, "browser");
  const [code, sockets] = [join(folder, "code"), join(folder, "egress")];
  for (const path of [folder, code, sockets]) {
    await mkdir(path);
    await chmod(path, 0o755);
  }
  // Other users of the machine do not get to the sockets.
  await chmod(folder, 0o700);
  if (builder.leaveRoot !== undefined) await chown(folder, builder.leaveRoot.uid, builder.leaveRoot.gid);
  await writeFile(join(code, "entry.sh"), entryScript(socat ?? "socat", program), { mode: 0o644 });
  const profile = {
    binds: [
      ...machine.system.binds,
      { from: code, to: JAIL_CODE, mode: "read" as const },
      { from: sockets, to: JAIL_EGRESS, mode: "read" as const },
      ...(program.folder === undefined ? [] : [{ from: program.folder, to: BROWSER_FOLDER, mode: "read" as const }]),
    ],
    links: machine.system.links,
    memoryFolders: { "/dev/shm": 512 * MB, "/tmp": 512 * MB },
    environment: { PATH: "/usr/bin:/bin", HOME: "/tmp", TMPDIR: "/tmp", LANG: "C.UTF-8" },
    ...{ namespaces: true, seccompFd: SECCOMP_FD, infoFd: INFO_FD },
  };
  const file = async (name: string, content: string | Uint8Array, mode: number) => {
    const path = join(folder, name);
    await writeFile(path, content, { mode });
    return path;
  };
  const info = await file("info", "", 0o600);
  const argumentFile = await file("arguments", bubblewrapArguments(profile).join("\0"), 0o600);
  const filter = await file("filter", builder.filter, 0o600);
  const words = [
    ...[...leaveRootWords(builder), builder.bwrap, "--args", `${ARGUMENTS_FD}`, "--", machine.prlimit],
    ...prlimitArguments({
      processes: 1_024,
      openFiles: 8_192,
      cpuSeconds: 24 * 3_600,
      fileBytes: 512 * MB,
      dataBytes: undefined,
    }),
    ...["/bin/sh", `${JAIL_CODE}/entry.sh`],
  ];
  const executablePath = await file(
    "start.sh",
    [
      `#!${bash ?? "/bin/bash"}`,
      // What this process inherited must not get in; 3 and 4 are how Playwright talks to the browser.
      'for path in /proc/self/fd/*; do fd=${path##*/}; if [ "$fd" -gt 4 ] && [ "$fd" -ne 255 ]; then eval "exec $fd>&-"; fi; done',
      `exec ${INFO_FD}>${shellWord(info)} ${ARGUMENTS_FD}<${shellWord(argumentFile)} ${SECCOMP_FD}<${shellWord(filter)}`,
      // Without an environment: process 1 shows its own to the jail.
      `exec -c ${words.map(shellWord).join(" ")} "$@"`,
      "",
    ].join("\n"),
    0o700,
  );
  return {
    executablePath,
    /** Where the host listens for the pages of session `slot`. */
    socketPath: (slot: number) => join(sockets, `${slot}`),
    /** Looks after the memory of a browser that has started. @returns how to end the watch, and the browser's processes */
    async watch(memoryMB: number, exceeded: () => void) {
      const pid = firstProcessIn(await readFile(info, "utf8"));
      if (pid === undefined) throw new Error("The jail of the browser did not say which process it is.");
      const bounds = { cpuMs: Number.POSITIVE_INFINITY, memoryBytes: memoryMB * MB, disk: undefined };
      const stop = watchJail(pid, bounds, exceeded);
      const kill = () => {
        try {
          process.kill(pid, "SIGKILL");
        } catch {
          // It has ended.
        }
      };
      return { stop, kill };
    },
  };
}

/** Runs first in the jail: brings each session's socket to a port, then becomes the browser. */
function entryScript(socat: string, program: ChromiumProgram): string {
  const ports = Array.from({ length: SLOTS }, (_, slot) => FIRST_PORT + slot);
  const hex = (port: number) => port.toString(16).toUpperCase().padStart(4, "0");
  const name = program.path.slice(program.path.lastIndexOf("/") + 1);
  const path = program.folder === undefined ? program.path : `${BROWSER_FOLDER}/${name}`;
  return [
    ...ports.map(
      (port, slot) =>
        `${shellWord(socat)} TCP-LISTEN:${port},bind=127.0.0.1,fork,reuseaddr,backlog=64 UNIX-CONNECT:${JAIL_EGRESS}/${slot} </dev/null >/dev/null 2>&1 3>&- 4>&- &`,
    ),
    "tries=0",
    ...ports.map(
      (port) =>
        `until grep -q ":${hex(port)} .* 0A " /proc/net/tcp; do tries=$((tries+1)); [ $tries -lt 1000 ] || exit 125; sleep 0.01; done`,
    ),
    // The profile is in the jail's own memory.
    'for word do shift; case $word in --user-data-dir=*) word=--user-data-dir=/tmp/profile;; esac; set -- "$@" "$word"; done',
    `exec ${shellWord(path)} "$@"`,
    "",
  ].join("\n");
}
