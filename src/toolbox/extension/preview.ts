import { firstChars } from "../../message/cut-value.ts";
import { type Described, oneLine, toolNameOf } from "./guest.ts";
import { ownLabels } from "./host-functions.ts";
import type { ExtensionManifest } from "./manifest.ts";
import { wishesOf } from "./permissions.ts";

/** Of one line of the question. What is behind it is in the source, which is shown too. */
const MAX_LINE_CHARS = 300;

/** What somebody is shown before an extension is loaded: all that it asks for, and all that it says to the model. */
export interface ExtensionPreview {
  readonly name: string;
  readonly version: string;
  /** The version that it takes the place of. */
  readonly replaces?: string;
  /** Fingerprint of manifest and source. */
  readonly hash: string;
  /** Exactly this is loaded already: there is nothing to agree to. */
  readonly loaded: boolean;
  /** Permissions and hooks, one line each. */
  readonly wishes: readonly string[];
  /** What every prompt of the agent would say because of it, in all of its conversations, one line each. */
  readonly prompt: readonly string[];
}

/** The words of an extension that go into prompts, whatever session they are of. */
export function promptLines(manifest: ExtensionManifest, { tools, hooks }: Described): string[] {
  const labels = ownLabels(manifest);
  return [
    ...tools.map(({ name, description }) => `tool ${toolNameOf(manifest.name, name)}: ${description}`),
    ...(manifest.context ?? []).map(
      ({ description }, i) => `block ${labels[i]}: ${description === undefined ? "" : oneLine(description)}`,
    ),
    ...(hooks.includes("beforeTurn") ? ["whatever its beforeTurn says, in each turn"] : []),
  ];
}

/** The question. The source is beside it, in the input of the call. */
export function questionOf({ name, version, replaces, hash, wishes, prompt }: ExtensionPreview, chars: number): string {
  const instead = replaces === undefined ? "" : `, instead of version ${replaces}`;
  return [
    `Load the extension "${name}" (version ${version}${instead})? Its source is code that a model wrote.`,
    `It asks for: ${wishes.length === 0 ? "nothing" : wishes.join("; ")}.`,
    `It adds to the prompts of all conversations: ${prompt.map((line) => firstChars(line, MAX_LINE_CHARS)).join(" | ")}.`,
    `Source: ${chars} characters, ${hash.slice(0, 16)}.`,
  ].join("\n");
}

/** What of an extension's own description is agreed to. */
export function describedText(manifest: ExtensionManifest, described: Described): string {
  return JSON.stringify([wishesOf(manifest), promptLines(manifest, described), described]);
}
