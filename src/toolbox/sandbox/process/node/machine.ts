import { chmod, mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Language } from "../../sandbox.ts";
import type { ProcessSettings } from "../process-sandbox.ts";
import type { Bind, JailLink } from "../profile.ts";
import { buildSeccompFilter, type FilterOptions, type Processor } from "../seccomp.ts";
import { type CgroupRoot, createCgroup, findCgroupRoot } from "./cgroup.ts";
import { findInside, findOutside, isOpenToAll, madeUpFiles, systemView } from "./programs.ts";
import { type Builder, startJail } from "./start-jail.ts";
import { removeTree, removeTreeNow } from "./remove-tree.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** What a jail is built with on this machine. */
export interface Machine {
  readonly builder: Builder;
  /** The system, with made-up files in the place of what is private. */
  readonly system: { readonly binds: readonly Bind[]; readonly links: readonly JailLink[] };
  readonly prlimit: string;
  readonly socat: string | undefined;
  readonly bash: string | undefined;
  readonly python: string | undefined;
  readonly node: string | undefined;
  readonly cgroups: CgroupRoot | undefined;
  readonly languages: readonly Language[];
  readonly detail: string;
  /** Deletes every file that was made for it. */
  remove(): Promise<void>;
}

/** What a tier wants from the machine. */
type MachineNeeds = Pick<ProcessSettings, "programs" | "runAs" | "cgroup" | "temporary"> & {
  readonly filter?: FilterOptions;
};

const TRIAL_MEMORY_MB = 64;
/** Where a path is needed that every system has. */
const SMALL = 1 << 20;

/** Folders of jails, for a process that ends without disposing of them. */
const leftovers = new Set<string>();
process.once("exit", () => {
  for (const folder of leftovers) removeTreeNow(folder);
});

/** Looks for everything that a jail needs and builds one, to see that it works. @returns the machine, or what is missing */
export async function prepareMachine(needs: MachineNeeds): Promise<Machine | { readonly missing: string }> {
  if (process.platform !== "linux") {
    return { missing: `Jails need Linux (this is ${process.platform}). Run the host in a Linux container or machine.` };
  }
  const processor = process.arch;
  if (!isProcessor(processor)) return { missing: `Jails need an x64 or arm64 processor (this is ${processor}).` };
  const { programs } = needs;
  const bwrap = await findOutside("bwrap", programs.bwrap);
  if (bwrap === undefined) return { missing: notInstalled("bwrap", "bubblewrap", programs.bwrap) };
  const prlimit = await findInside(["prlimit"], programs.prlimit);
  if (prlimit === undefined) return { missing: notInstalled("prlimit", "util-linux", programs.prlimit) };
  const mkfifo = await findOutside("mkfifo", undefined);
  if (mkfifo === undefined) return { missing: notInstalled("mkfifo", "coreutils", undefined) };
  const isRoot = process.getuid?.() === 0;
  const setpriv = isRoot ? await findOutside("setpriv", programs.setpriv) : undefined;
  if (isRoot && setpriv === undefined) return { missing: notInstalled("setpriv", "util-linux", programs.setpriv) };

  const temporary = await temporaryFolder(isRoot, needs.temporary === undefined ? undefined : [needs.temporary]);
  if (temporary === undefined) {
    return {
      missing: isRoot
        ? `There is no folder for temporary files that can be written to and that user ${needs.runAs.uid} can reach. Give \`temporary\`, one that all can go through.`
        : "There is no folder for temporary files that can be written to. Give `temporary`.",
    };
  }
  const folder = await mkdtemp(join(temporary, "perdure-jail-"));
  leftovers.add(folder);
  const remove = async () => {
    await removeTree(folder);
    leftovers.delete(folder);
  };
  try {
    // The jail's user goes through, and sees no names.
    await chmod(folder, 0o711);
    const cgroups = await findCgroupRoot(needs.cgroup);
    const builder: Builder = {
      bwrap,
      leaveRoot: setpriv === undefined ? undefined : { setpriv, ...needs.runAs },
      folder,
      mkfifo,
      filter: buildSeccompFilter(processor, { uncountedMemory: cgroups !== undefined, ...needs.filter }),
    };
    const system = await systemOf(folder);
    const built = { builder, system, prlimit };
    let groups = cgroups;
    let fault = await tryJail(built, groups);
    if (fault !== undefined && groups !== undefined && needs.cgroup === undefined) {
      groups = undefined;
      fault = await tryJail(built, undefined);
    }
    if (fault !== undefined) {
      await remove();
      return { missing: fault };
    }
    const bash = await findInside(["bash"], programs.bash);
    const python = await findInside(["python3", "python"], programs.python);
    const node = await findNode(programs.node, isRoot);
    const socat = await findInside(["socat"], programs.socat);
    const languages: Language[] = ["argv"];
    if (bash !== undefined) languages.push("bash");
    if (python !== undefined) languages.push("python");
    if (node !== undefined) languages.push("js", "ts");
    const detail = [
      `bubblewrap with a seccomp filter for ${processor}`,
      isRoot ? `as user ${needs.runAs.uid} (started as root)` : "as the user of this process",
      groups === undefined
        ? "memory bounded per process by the kernel and watched for the whole run (no cgroup that this process may use)"
        : `memory bounded by a cgroup (version ${groups.version})`,
      socat === undefined ? `no network: ${notInstalled("socat", "socat", programs.socat)}` : "network through socat",
      `languages: ${languages.join(", ")}`,
    ].join("; ");
    return { ...built, socat, bash, python, node, cgroups: groups, languages, detail, remove };
  } catch (thrown) {
    await remove();
    throw thrown;
  }
}

function isProcessor(name: string): name is Processor {
  return name === "x64" || name === "arm64";
}

function notInstalled(program: string, pack: string, given: string | undefined): string {
  if (given !== undefined) return `There is no program that can be run at the path that was given for ${program}.`;
  return `There is no program "${program}" here. Install the package ${pack} (Debian, Ubuntu: apt-get install ${pack}).`;
}

async function systemOf(folder: string): Promise<Machine["system"]> {
  const { binds, links } = await systemView();
  await mkdir(join(folder, "etc"));
  await chmod(join(folder, "etc"), 0o755);
  for (const [name, content] of Object.entries(madeUpFiles)) {
    const from = join(folder, "etc", name);
    await writeFile(from, content);
    await chmod(from, 0o644);
    binds.push({ from, to: `/etc/${name}`, mode: "read" });
  }
  return { binds, links };
}

async function findNode(given: string | undefined, isRoot: boolean): Promise<string | undefined> {
  if (given !== undefined) return await findOutside("node", given);
  // Our own is as new as the host needs it to be. Root's may be where the jail's user cannot go.
  if (!isRoot || (await isOpenToAll(process.execPath))) return process.execPath;
  return await findInside(["node"]);
}

/** Builds a jail with nothing in it. @returns why it cannot be done */
async function tryJail(
  machine: Pick<Machine, "builder" | "system" | "prlimit">,
  cgroups: CgroupRoot | undefined,
): Promise<string | undefined> {
  const group =
    cgroups === undefined ? undefined : await createCgroup(cgroups, { memoryMB: TRIAL_MEMORY_MB, processes: 16 });
  try {
    const jail = await startJail(machine.builder, {
      profile: {
        ...machine.system,
        memoryFolders: { "/dev/shm": SMALL, "/tmp": SMALL },
        ...{ environment: {}, namespaces: false },
      },
      command: [machine.prlimit, "--nofile=64:64", "--", "/bin/sh", "-c", "echo works"],
      join: group?.joinFile,
    });
    jail.child.stdin?.end();
    const [out, err] = await Promise.all([text(jail.stdout), text(jail.stderr)]);
    await jail.gone();
    return out === "works\n" ? undefined : faultOf(err);
  } finally {
    await group?.remove();
  }
}

const namespaceTrouble = /namespace|uid map|gid map|clone|unshare|setgroups|loopback|RTM_NEWADDR/i;

function faultOf(said: string): string {
  const line = said.trim().split("\n").at(-1)?.slice(0, 300) ?? "";
  if (!namespaceTrouble.test(line)) return `bubblewrap could not build a jail: ${line || "it said nothing"}.`;
  return (
    `User namespaces are closed to this process; bubblewrap said: "${line}". Open them: on Debian kernel.unprivileged_userns_clone=1, ` +
    "on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0, elsewhere user.max_user_namespaces above 0; " +
    "in a container, allow unshare and mount in its seccomp and AppArmor profiles."
  );
}
