/** A file of a skill, beside its `SKILL.md`. */
export interface SkillResource {
  /** Below the skill's directory, such as `references/style.md`. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly mediaType: string;
  /** Whether it is read as text. */
  readonly text: boolean;
}

/** Instructions that a model fetches when a task needs them, and the files that belong to them. */
export interface Skill {
  readonly name: string;
  /** What it does and when to use it: all that the model sees before it fetches the rest. */
  readonly description: string;
  readonly license?: string;
  readonly compatibility?: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** The tools that its author counts on. Perdure neither adds nor removes any by it. */
  readonly allowedTools: readonly string[];
  /** The text of `SKILL.md` without its front matter. */
  readonly instructions: string;
  readonly resources: readonly SkillResource[];
  /** The bytes of a resource. Rejects (`not_found`) for a path that is not in `resources`. May be slow. */
  read(path: string): Promise<Uint8Array>;
}

/** Something that was left out, and why. */
export interface SkillWarning {
  /** The `id` of the source. */
  readonly source: string;
  readonly skill?: string;
  readonly message: string;
}

/** What a source holds now. */
export interface SkillSet {
  readonly skills: readonly Skill[];
  readonly warnings: readonly SkillWarning[];
}

/** A place that skills come from. Both methods may reject: then the source is left out, with a warning. */
export interface SkillSource {
  /** For warnings, such as `directory skills`. */
  readonly id: string;
  /** Changes when the skills change. Asked for before every turn, so it should cost little. */
  fingerprint(): Promise<string>;
  load(): Promise<SkillSet>;
}

/** What a script is run with. */
export interface SkillScriptCall {
  readonly skill: Skill;
  /** The path of the script in the skill, such as `scripts/format.ts`. */
  readonly script: string;
  /** JSON. */
  readonly input: unknown;
  readonly signal?: AbortSignal;
}

/** A file that a script left behind. */
export interface SkillArtifact {
  readonly name: string;
  readonly mediaType: string;
  readonly encoding: "text" | "base64";
  readonly content: string;
}

/** How a script ended. */
export interface SkillScriptResult {
  readonly ok: boolean;
  /** What went wrong, for the model to read. */
  readonly error?: string;
  /** What the function returned. */
  readonly result?: unknown;
  readonly exitCode?: number;
  readonly stdout?: string;
  readonly stderr?: string;
  /** What a function wrote to its console. */
  readonly logs?: readonly string[];
  readonly artifacts: readonly SkillArtifact[];
}

/** Runs the scripts of skills. `skills.runner` makes one. */
export interface SkillScriptRunner {
  /** The endings of the scripts that it can run, such as `.ts`. */
  readonly extensions: readonly string[];
  /** Never rejects for anything that the script does. */
  run(call: SkillScriptCall): Promise<SkillScriptResult>;
}

/** The files of the agent, as a script in JavaScript or TypeScript sees them. Writing needs `workspace: "read-write"`. */
export interface SkillWorkspace {
  readFile(path: string): Promise<string>;
  readFileBytes(path: string): Promise<Uint8Array>;
  readDir(path: string): Promise<readonly { readonly name: string; readonly type: string }[]>;
  stat(path: string): Promise<{ readonly type: string; readonly size: number } | null>;
  exists(path: string): Promise<boolean>;
  writeFile?(path: string, content: string | Uint8Array): Promise<void>;
  appendFile?(path: string, content: string | Uint8Array): Promise<void>;
  mkdir?(path: string, options?: { readonly recursive?: boolean }): Promise<void>;
  rm?(path: string, options?: { readonly recursive?: boolean; readonly force?: boolean }): Promise<void>;
  rename?(from: string, to: string): Promise<void>;
}

/** The second argument of a script's function: `export default async function run(input, ctx) { … }`. */
export interface SkillRunContext {
  readonly skill: {
    readonly name: string;
    readonly description: string;
    readonly metadata: Readonly<Record<string, string>>;
  };
  /** The text resources of the skill, by path. */
  readonly files: Readonly<Record<string, string>>;
  /** Absent when the runner gives no access. */
  readonly workspace?: SkillWorkspace;
  readonly tools: {
    /** Calls one of the tools that the runner was given. Rejects with the tool's message. */
    call(name: string, args?: unknown): Promise<unknown>;
    readonly names: readonly string[];
  };
  readonly output: {
    /** Leaves a file for the caller, at most 20 of 64 kB. The workspace is not touched. */
    writeFile(name: string, content: string | Uint8Array): Promise<void>;
  };
}
