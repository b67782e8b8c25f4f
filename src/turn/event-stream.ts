const END = "[DONE]";

/** The `data` of server-sent events, as they come in. Other fields and comments are passed over. */
export async function* readEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
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
      const data = text.slice(6, -2);
      if (data !== END) yield data;
      continue;
    }
    rest += text.includes("\r") ? text.replaceAll(/\r\n?/g, "\n") : text;
    for (let end = rest.indexOf("\n\n"); end !== -1; end = rest.indexOf("\n\n")) {
      const data = dataOf(rest.slice(0, end));
      rest = rest.slice(end + 2);
      if (data !== undefined && data !== END) yield data;
    }
  }
  const data = dataOf(rest + decoder.decode());
  if (data !== undefined && data !== END) yield data;
}

function dataOf(event: string): string | undefined {
  const lines: string[] = [];
  for (const line of event.split("\n")) {
    if (line.startsWith("data:")) lines.push(line.slice(line.startsWith("data: ") ? 6 : 5));
  }
  return lines.length === 0 ? undefined : lines.join("\n");
}
