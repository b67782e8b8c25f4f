/** One event of a server-sent stream. */
export interface StreamEvent {
  readonly id: string | undefined;
  readonly data: string;
}

/** What the AI SDK ends its streams with, in place of a chunk. */
export const END_OF_STREAM = "[DONE]";

/**
 * Server-sent events with data, as they come in; other fields and comments are skipped.
 * @param lenient takes what follows the last blank line as an event too, as some servers end. Otherwise it is dropped as cut.
 */
export async function* readEvents(bytes: AsyncIterable<Uint8Array>, lenient = false): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  /** A line may end in CR, LF or both: a CR at the end of a piece is looked at with the next one. */
  let held = "";
  for await (const piece of bytes) {
    let text = held + decoder.decode(piece, { stream: true });
    held = text.endsWith("\r") ? "\r" : "";
    if (held !== "") text = text.slice(0, -1);
    // The AI SDK writes one event per piece; then nothing needs to be looked for.
    if (rest === "" && text.startsWith("data: ") && text.indexOf("\n") === text.length - 2 && text.endsWith("\n\n")) {
      yield { id: undefined, data: text.slice(6, -2) };
      continue;
    }
    rest += text.includes("\r") ? text.replaceAll(/\r\n?/g, "\n") : text;
    for (let end = rest.indexOf("\n\n"); end !== -1; end = rest.indexOf("\n\n")) {
      const event = parseEvent(rest.slice(0, end));
      rest = rest.slice(end + 2);
      if (event !== undefined) yield event;
    }
  }
  const event = lenient ? parseEvent(rest + decoder.decode()) : undefined;
  if (event !== undefined) yield event;
}

function parseEvent(block: string): StreamEvent | undefined {
  let id: string | undefined;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("data:")) data.push(valueOf(line, 5));
    else if (line.startsWith("id:")) id = valueOf(line, 3);
  }
  return data.length === 0 ? undefined : { id, data: data.join("\n") };
}

/** One space after the colon belongs to the colon. */
function valueOf(line: string, colon: number): string {
  return line.slice(line[colon] === " " ? colon + 1 : colon);
}
