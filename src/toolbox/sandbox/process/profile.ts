/** A path of the host and where the jail sees it. */
export interface Bind {
  readonly from: string;
  readonly to: string;
  readonly mode: "read" | "read-write";
}

/** A link that the jail has at `path`. */
export interface JailLink {
  readonly target: string;
  readonly path: string;
}

/** One jail, as bubblewrap is told to build it. What is not here is not there. */
export interface JailProfile {
  readonly binds: readonly Bind[];
  readonly links: readonly JailLink[];
  /** Sizes of memory file systems by path, in bytes. */
  readonly memoryFolders: Readonly<Record<string, number>>;
  readonly environment: Readonly<Record<string, string>>;
  /** Only for a browser, which builds its own sandbox of them. */
  readonly namespaces: boolean;
  readonly seccompFd: number;
  readonly infoFd: number;
}

/** Who the jail's processes are, to themselves. */
const JAIL_USER = 1000;

/** The arguments of `bwrap`, without the command. */
export function bubblewrapArguments(profile: JailProfile): string[] {
  return [
    ...["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--clearenv"],
    ...(profile.namespaces ? [] : ["--disable-userns"]),
    ...["--cap-drop", "ALL", "--uid", `${JAIL_USER}`, "--gid", `${JAIL_USER}`, "--hostname", "sandbox"],
    ...["--proc", "/proc", "--dev", "/dev"],
    ...Object.entries(profile.memoryFolders).flatMap(([path, bytes]) => ["--size", `${bytes}`, "--tmpfs", path]),
    ...profile.binds.flatMap(({ from, to, mode }) => [mode === "read" ? "--ro-bind" : "--bind", from, to]),
    ...profile.links.flatMap(({ target, path }) => ["--symlink", target, path]),
    // Both are memory without a bound, and would belong to the guest.
    ...["--remount-ro", "/dev", "--remount-ro", "/"],
    ...Object.entries(profile.environment).flatMap(([name, value]) => ["--setenv", name, value]),
    ...["--chdir", "/", "--seccomp", `${profile.seccompFd}`, "--info-fd", `${profile.infoFd}`],
  ];
}

/** Bounds that the kernel keeps for each process, as arguments of `prlimit`. */
export function prlimitArguments(bounds: {
  readonly processes: number;
  readonly openFiles: number;
  readonly cpuSeconds: number;
  readonly fileBytes: number;
  readonly dataBytes: number | undefined;
}): string[] {
  const one = (name: string, value: number) => `--${name}=${value}:${value}`;
  return [
    one("nproc", bounds.processes),
    one("nofile", bounds.openFiles),
    one("cpu", bounds.cpuSeconds),
    one("fsize", bounds.fileBytes),
    one("core", 0),
    // Not the address space: V8 and WebAssembly reserve far more of that than they ever use.
    ...(bounds.dataBytes === undefined ? [] : [one("data", bounds.dataBytes)]),
    "--",
  ];
}

/** A word that a POSIX shell reads back as it is. */
export function shellWord(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
