import { PerdureError } from "../error.ts";
import type { HostedAgentClass } from "../port.ts";
import { classTable, type FindClass } from "../wire/class-table.ts";

/** Agent classes by the name that they are addressed with, or as a list that uses the classes' own names. */
export type AgentClasses = Readonly<Record<string, HostedAgentClass>> | readonly HostedAgentClass[];

/** Which classes a host knows: roots can be reached by URL, the others only as children. */
export class Registry {
  readonly #byName = new Map<string, HostedAgentClass>();
  readonly #names = new Map<HostedAgentClass, string>();
  readonly isRootClass: FindClass;
  readonly isClass: FindClass;

  /** @throws PerdureError `bad_config` when names clash or cannot stand in a URL. */
  constructor(roots: AgentClasses, children: AgentClasses) {
    const rootNames = this.#add(roots);
    this.#add(children);
    this.isRootClass = classTable(rootNames);
    this.isClass = classTable(this.#byName.keys());
  }

  /** @throws PerdureError `unknown_agent` */
  get(name: string): HostedAgentClass {
    const cls = this.#byName.get(name);
    if (cls !== undefined) return cls;
    throw new PerdureError("unknown_agent", `No agent class is called "${name}". This host knows: ${this.#list()}.`);
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }

  /** @throws PerdureError `unknown_agent` */
  nameOf(cls: HostedAgentClass): string {
    const name = this.#names.get(cls);
    if (name !== undefined) return name;
    throw new PerdureError(
      "unknown_agent",
      `The class ${cls.name} is not registered. Add it to \`agents\`, or to \`subAgents\` if it is only a child. This host knows: ${this.#list()}.`,
    );
  }

  #add(classes: AgentClasses): string[] {
    const entries = Array.isArray(classes)
      ? (classes as readonly HostedAgentClass[]).map((cls) => [cls.name, cls] as const)
      : Object.entries(classes as Readonly<Record<string, HostedAgentClass>>);
    for (const [name, cls] of entries) {
      const taken = this.#byName.get(name);
      if (taken !== undefined && taken !== cls) {
        throw new PerdureError(
          "bad_config",
          `Two agent classes are called "${name}". Register one of them under another name.`,
        );
      }
      this.#byName.set(name, cls);
      if (!this.#names.has(cls)) this.#names.set(cls, name);
    }
    return entries.map(([name]) => name);
  }

  #list(): string {
    return [...this.#byName.keys()].join(", ") || "none";
  }
}
