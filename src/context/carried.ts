import { safeJson } from "./text-units.ts";
import { isRecord } from "../base/json.ts";
import { callHead, MAX_LINE, oneLine, WAITING_TITLE } from "../message/told-line.ts";
import { isToolPart, type Part, toolName, type UIMessage } from "../message/types.ts";
import { spoken } from "./serialise.ts";

/** What is true now and must not depend on what a model remembers of it. All lists in the order that they are told in. */
export interface LiveState {
  /** Work that was given to other agents and has not ended. */
  readonly runs?: readonly { readonly id: string; readonly name: string; readonly task?: string }[] | undefined;
  /** Tool calls that go on in the background. */
  readonly background?:
    | readonly { readonly call: string; readonly tool: string; readonly input: unknown }[]
    | undefined;
  /** Tool calls that wait for a person. */
  readonly approvals?: readonly { readonly call: string; readonly tool: string; readonly input: unknown }[] | undefined;
  /** Messages of users that wait for their turn. */
  readonly queued?: readonly { readonly id: string; readonly text: string }[] | undefined;
  /** What users said into the answer that is being written, where its beginning is covered. */
  readonly said?: readonly string[] | undefined;
  /** What is to be done, and what is. */
  readonly todos?: readonly { readonly text: string; readonly state?: string }[] | undefined;
  readonly plan?: string | undefined;
  /** Files that tools worked on. */
  readonly files?: readonly TouchedFile[] | undefined;
  /** Memory that is loaded, by its label. */
  readonly loaded?: readonly string[] | undefined;
  /** What the app adds: a heading and its lines. */
  readonly more?: readonly { readonly title: string; readonly lines: readonly string[] }[] | undefined;
}

/** A file, and the tool that was used on it last. */
export interface TouchedFile {
  readonly path: string;
  readonly tool: string;
}

/** The most lines of one kind; of more, the last ones are told. */
const MAX_LINES = 40;
/** The most files that are remembered from compaction to compaction. */
export const MAX_FILES = 60;
/** Names of inputs that mean a file. */
const FILE_KEYS = ["path", "file", "filePath", "file_path", "filename", "fileName", "file_name"] as const;

/** The state as text; empty without any. Depends on its arguments alone. @param words what the user said, as text. */
export function renderCarried(state: LiveState, words = ""): string {
  const blocks = [
    words,
    block(
      "Work given to other agents that has not ended (do not start it again):",
      state.runs?.map(({ id, name, task }) => `${name}, run ${id}${task === undefined ? "" : `: ${task}`}`),
    ),
    block(
      "Tool calls that go on in the background (do not make them again; each result comes as a message):",
      state.background?.map(({ call, tool, input }) => callHead(tool, call) + safeJson(input)),
    ),
    block(
      "Tool calls that wait for a person's approval (do not ask again):",
      state.approvals?.map(({ call, tool, input }) => callHead(tool, call) + safeJson(input)),
    ),
    block(
      WAITING_TITLE,
      state.queued?.map(({ text }) => text),
    ),
    block("What the user said while this answer was being written:", state.said),
    block(
      "To do:",
      state.todos?.map(({ text, state: is }) => (is === undefined ? text : `[${is}] ${text}`)),
    ),
    state.plan === undefined || state.plan === "" ? "" : `The plan:\n${state.plan}`,
    block(
      "Files that tools worked on:",
      state.files?.map(({ path, tool }) => `${path} (${tool})`),
    ),
    block("Memory that is loaded:", state.loaded),
    ...(state.more ?? []).map(({ title, lines }) => block(title, lines)),
  ];
  return blocks.filter((text) => text !== "").join("\n\n");
}

/** The files of these parts that tools finished with, oldest first. */
export function touchedFiles(parts: readonly Part[]): TouchedFile[] {
  const files: TouchedFile[] = [];
  for (const part of parts) {
    if (!isToolPart(part) || part.state !== "output-available" || !isRecord(part.input)) continue;
    for (const key of FILE_KEYS) {
      const path = part.input[key];
      if (typeof path === "string" && path !== "" && path.length <= MAX_LINE)
        files.push({ path, tool: toolName(part) });
    }
  }
  return files;
}

/** Two lists of files as one: each file once, where it was touched last; the newest are kept. */
export function joinFiles(older: readonly TouchedFile[], newer: readonly TouchedFile[]): TouchedFile[] {
  const files = new Map<string, TouchedFile>();
  for (const file of [...older, ...newer]) {
    files.delete(file.path);
    files.set(file.path, file);
  }
  return [...files.values()].slice(-MAX_FILES);
}

/** What users said into an answer, in the parts of it that are covered. */
export function saidInto(message: UIMessage, parts: number): string[] {
  const texts: string[] = [];
  for (const part of message.parts.slice(0, parts)) if (part.type === "steering-message") texts.push(spoken(part));
  return texts.filter((text) => text !== "");
}

function block(title: string, lines: readonly string[] | undefined): string {
  if (lines === undefined || lines.length === 0) return "";
  const left = lines.length - MAX_LINES;
  const told = lines.slice(-MAX_LINES).map((line) => `- ${oneLine(line)}`);
  return [title, ...(left > 0 ? [`- (${left} more)`] : []), ...told].join("\n");
}
