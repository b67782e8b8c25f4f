import { normalizePath } from "../sandbox/path.ts";
import { unifiedDiff } from "./diff.ts";
import { collectStream, encodeText, streamOf, textOf } from "./text.ts";
import type { WorkspaceFiles } from "./types.ts";

type Needed = "readFile" | "readFileBytes" | "writeFileBytes" | "appendFileBytes" | "stat" | "rename";

/** Larger files are not written by {@link ByteFiles.writeFileStream}, where nothing else is said. */
export const MAX_FILE_BYTES = 100_000_000;

/** What files of every kind do by means of the rest. */
export abstract class ByteFiles implements Pick<WorkspaceFiles, Needed> {
  abstract readFile(path: string): Promise<string | null>;
  abstract readFileBytes(path: string): Promise<Uint8Array>;
  abstract writeFileBytes(path: string, bytes: Uint8Array): Promise<void>;
  abstract appendFileBytes(path: string, bytes: Uint8Array): Promise<void>;
  abstract stat(path: string): ReturnType<WorkspaceFiles["stat"]>;
  abstract rename(from: string, to: string): Promise<void>;

  /** The largest file that can be written. */
  protected get maxFileBytes(): number {
    return MAX_FILE_BYTES;
  }

  async readFileStream(path: string): Promise<ReadableStream<Uint8Array> | null> {
    return (await this.exists(path)) ? streamOf(await this.readFileBytes(path)) : null;
  }

  async writeFile(path: string, content: string): Promise<void> {
    await this.writeFileBytes(path, encodeText(content));
  }

  async writeFileStream(path: string, stream: ReadableStream<Uint8Array>): Promise<void> {
    await this.writeFileBytes(normalizePath(path), await collectStream(stream, this.maxFileBytes));
  }

  async appendFile(path: string, text: string): Promise<void> {
    await this.appendFileBytes(path, encodeText(text));
  }

  async exists(path: string): Promise<boolean> {
    return (await this.stat(path)) !== null;
  }

  async mv(from: string, to: string): Promise<void> {
    await this.rename(from, to);
  }

  async diff(pathA: string, pathB: string): Promise<string> {
    const [a, b] = await Promise.all([pathA, pathB].map(async (path) => textOf(path, await this.readFileBytes(path))));
    return unifiedDiff(a ?? "", b ?? "", { a: normalizePath(pathA), b: normalizePath(pathB) });
  }

  async diffContent(path: string, content: string): Promise<string> {
    const at = normalizePath(path);
    return unifiedDiff((await this.readFile(path)) ?? "", content, { a: at, b: at });
  }
}
