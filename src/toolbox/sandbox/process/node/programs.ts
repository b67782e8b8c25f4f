import { constants } from "node:fs";
import { access, lstat, readlink, realpath, stat } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import type { Bind, JailLink } from "../profile.ts";

/** Where the jail looks for programs; all of it is read from `/usr`. */
const JAIL_FOLDERS = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"];

/** A program that runs before the jail is there. */
export async function findOutside(name: string, given: string | undefined): Promise<string | undefined> {
  const folders = [...JAIL_FOLDERS, ...(process.env.PATH ?? "").split(delimiter)];
  return await firstRunnable(given === undefined ? folders.map((folder) => join(folder, name)) : [given]);
}

/** A program that the jail sees at the same path. */
export async function findInside(names: readonly string[], given?: string): Promise<string | undefined> {
  const paths = names.flatMap((name) => JAIL_FOLDERS.map((folder) => join(folder, name)));
  return await firstRunnable(given === undefined ? paths : [given]);
}

async function firstRunnable(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    if (path.startsWith("/") && (await isRunnable(path))) return path;
  }
  return undefined;
}

async function isRunnable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

/** Whether everybody may run the file at `path`: root's own home, for one, is closed to the user of the jail. */
export async function isOpenToAll(path: string): Promise<boolean> {
  try {
    const real = await realpath(path);
    return ((await stat(real)).mode & 0o005) === 0o005 && (await isWayOpenToAll(dirname(real)));
  } catch {
    return false;
  }
}

/** Whether everybody may go through a folder and all that it is in. */
export async function isWayOpenToAll(path: string): Promise<boolean> {
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) return false;
  for (let folder = real; ; folder = dirname(folder)) {
    if (((await stat(folder)).mode & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}

const SYSTEM_FOLDERS = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/** Parts of `/etc` that programs need to start; none holds a secret. */
const SYSTEM_FILES = [
  "/etc/alternatives",
  "/etc/ld.so.cache",
  "/etc/ld.so.conf",
  "/etc/ld.so.conf.d",
  "/etc/localtime",
  "/etc/ssl/certs",
  "/etc/pki/tls/certs",
  "/etc/ca-certificates",
  "/etc/fonts",
  "/etc/mime.types",
  "/etc/magic",
];

/** The machine's programs and libraries, to read. */
export async function systemView(): Promise<{ readonly binds: Bind[]; readonly links: JailLink[] }> {
  const binds: Bind[] = [{ from: "/usr", to: "/usr", mode: "read" }];
  const links: JailLink[] = [];
  for (const path of SYSTEM_FOLDERS) {
    const found = await lstat(path).catch(() => undefined);
    if (found?.isSymbolicLink() === true) links.push({ target: await readlink(path), path });
    else if (found?.isDirectory() === true) binds.push({ from: path, to: path, mode: "read" });
  }
  for (const path of SYSTEM_FILES) {
    // A link is followed here, because what it points to may not be in the jail.
    const real = await realpath(path).catch(() => undefined);
    if (real !== undefined) binds.push({ from: real, to: path, mode: "read" });
  }
  return { binds, links };
}

/** What the jail has in place of the machine's own files. */
export const madeUpFiles: Readonly<Record<string, string>> = {
  passwd: "root:x:0:0:root:/:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
  group: "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n",
  hosts: "127.0.0.1 localhost sandbox\n::1 localhost\n",
  "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
  "resolv.conf": "",
};
