import { PerdureError } from "../base/error.ts";
import { isAgentClass, type HostedAgentClass, loads } from "../port.ts";
import { classTable, type FindClass } from "../wire/class-table.ts";

/** Agent classes by the name that they are addressed with, or as a list that uses the classes' own names. */
export type AgentClasses = Readonly<Record<string, HostedAgentClass>> | readonly HostedAgentClass[];

/** Which classes a host knows: roots can be reached by URL, the others only as children. */
export class Registry {
  /** Classes that were replaced keep their name: whoever still holds one reaches what took its place. */
  readonly #names = new WeakMap<HostedAgentClass, string>();
  #classes: Classes;

  /** @throws PerdureError `bad_config` when names clash or cannot stand in a URL. */
  constructor(roots: AgentClasses, children: AgentClasses) {
    this.#classes = toClasses(roots, children);
    this.#name();
  }

  get isRootClass(): FindClass {
    return this.#classes.isRootClass;
  }

  get isClass(): FindClass {
    return this.#classes.isClass;
  }

  /** Takes these classes instead. @returns the names whose class changed @throws PerdureError `bad_config`, and changes nothing */
  replace(roots: AgentClasses, children: AgentClasses): ReadonlySet<string> {
    const old = this.#classes.byName;
    this.#classes = toClasses(roots, children);
    this.#name();
    const { byName } = this.#classes;
    const names = new Set([...old.keys(), ...byName.keys()]);
    return new Set([...names].filter((name) => old.get(name) !== byName.get(name)));
  }

  /** @throws PerdureError `unknown_agent` */
  get(name: string): HostedAgentClass {
    const cls = this.#classes.byName.get(name);
    if (cls !== undefined) return cls;
    throw new PerdureError("unknown_agent", `No agent class is called "${name}". This host knows: ${this.#list()}.`);
  }

  has(name: string): boolean {
    return this.#classes.byName.has(name);
  }

  /** All names, those of children too. */
  get names(): string[] {
    return [...this.#classes.byName.keys()];
  }

  /** @throws PerdureError `unknown_agent` */
  nameOf(cls: HostedAgentClass): string {
    const name = this.#names.get(cls);
    if (name !== undefined && this.has(name)) return name;
    throw new PerdureError(
      "unknown_agent",
      `The class ${cls.name} is not registered. Add it to \`agents\`, or to \`subAgents\` if it is only a child. This host knows: ${this.#list()}.`,
    );
  }

  #name(): void {
    const named = new Set<HostedAgentClass>();
    for (const [name, cls] of this.#classes.byName) {
      if (!named.has(cls)) this.#names.set(cls, name);
      named.add(cls);
    }
  }

  #list(): string {
    return this.names.join(", ") || "none";
  }
}

interface Classes {
  readonly byName: ReadonlyMap<string, HostedAgentClass>;
  readonly isRootClass: FindClass;
  readonly isClass: FindClass;
}

function toClasses(roots: AgentClasses, children: AgentClasses): Classes {
  const byName = new Map<string, HostedAgentClass>();
  const names = new Map<HostedAgentClass, string>();
  const rootEntries = namedClasses(roots, "agents");
  for (const [name, cls] of [...rootEntries, ...namedClasses(children, "subAgents")]) {
    const taken = byName.get(name);
    if (taken !== undefined && taken !== cls) {
      throw new PerdureError(
        "bad_config",
        `Two agent classes are called "${name}". Register one of them under another name.`,
      );
    }
    byName.set(name, cls);
    const other = names.get(cls) ?? name;
    if (other !== name) {
      throw new PerdureError(
        "bad_config",
        `One class is registered as "${other}" and as "${name}". Register it once; for the second name, write a class that extends it.`,
      );
    }
    names.set(cls, name);
  }
  const rootNames = rootEntries.map(([name]) => name);
  return { byName, isRootClass: classTable(rootNames), isClass: classTable(byName.keys()) };
}

/** Loads what agents of these classes need, so that the first of them does not wait. @throws what one of their needs throws */
export async function loadNeeds(classes: AgentClasses, option: string): Promise<void> {
  await Promise.all(namedClasses(classes, option).map(async ([, cls]) => await cls[loads]?.()));
}

/** The classes by their registered names. @throws PerdureError `bad_config` for what is no agent class. */
export function namedClasses(classes: AgentClasses, option: string): (readonly [string, HostedAgentClass])[] {
  if (typeof (classes as unknown) !== "object" || (classes as unknown) === null) {
    throw new PerdureError(
      "bad_config",
      `\`${option}\` must be the classes of the host by name, as in \`{ ChatAgent }\`, or a list.`,
    );
  }
  const named = Array.isArray(classes)
    ? (classes as readonly HostedAgentClass[]).map((cls) => [Object(cls).name as string, cls] as const)
    : Object.entries(classes as Readonly<Record<string, HostedAgentClass>>);
  for (const [name, cls] of named) {
    if (!isAgentClass(cls)) {
      throw new PerdureError(
        "bad_config",
        `${name || `One of \`${option}\``} is no agent class. It must extend Agent, AIChatAgent or Think.`,
      );
    }
  }
  const again = named.find(([name, cls], at) => named.findIndex((one) => one[0] === name && one[1] === cls) !== at);
  if (again !== undefined) throw new PerdureError("bad_config", `\`${option}\`: ${again[0]} is listed twice.`);
  return named;
}
