import type { UIMessage } from "ai";

type Part = UIMessage["parts"][number];
type FilePart = Extract<Part, { type: "file" }>;

/**
 * What of a conversation goes to the model: all that it is to read, beginning with a message of the user. Attachments
 * must have come with the message: an address would be fetched by this server, wherever it points.
 */
export function toModelInput(messages: readonly UIMessage[], options: { readonly readsText: boolean }): UIMessage[] {
  const first = messages.findIndex(({ role }) => role === "user");
  return messages
    .slice(Math.max(0, first))
    .filter(hasContent)
    .map((message) => ({
      ...message,
      parts: message.parts.map((part) => (part.type === "file" ? toInput(part, options.readsText) : part)),
    }));
}

/** A turn that failed at once leaves an answer without anything in it, which providers refuse. */
function hasContent({ parts }: UIMessage): boolean {
  return parts.some((part) => part.type !== "step-start");
}

function toInput(part: FilePart, readsText: boolean): Part {
  const name = part.filename ?? "a file";
  if (!part.url.startsWith("data:")) return { type: "text", text: `(${name} is not attached: it is only a link.)` };
  const data = bytesOf(part.url);
  if (readsText && /^(?:text\/|application\/(?:json|xml|yaml))/.test(part.mediaType)) {
    // Few models take text files as files; all of them read text.
    return { type: "text", text: `The file ${name}:\n\n${data.toString("utf8")}` };
  }
  // Written anew: what is not quite base64 would make every later turn of the conversation fail.
  return { ...part, url: `data:${part.mediaType};base64,${data.toString("base64")}` };
}

/** Never throws: what cannot be decoded is taken as it is. */
function bytesOf(dataUrl: string): Buffer {
  const comma = dataUrl.indexOf(",");
  const data = dataUrl.slice(comma + 1);
  if (dataUrl.slice(0, comma).endsWith(";base64")) return Buffer.from(data, "base64");
  try {
    return Buffer.from(decodeURIComponent(data), "utf8");
  } catch {
    return Buffer.from(data, "utf8");
  }
}
