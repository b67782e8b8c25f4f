/** What the model asks of a fetch tool. */
export interface FetchInput {
  readonly url: string;
  readonly method?: "GET" | "HEAD";
  readonly headers?: Readonly<Record<string, string>>;
  readonly format?: "markdown" | "raw";
  readonly from?: number;
}

const known = ["url", "method", "headers", "format", "from"];

/** The input, or what is wrong with it, for the model to mend. */
export function readFetchInput(input: unknown, headerNames: readonly string[]): FetchInput | string {
  if (typeof input !== "object" || input === null) return "Give an object with `url`.";
  const {
    url,
    method = "GET",
    headers = {},
    format = "markdown",
    from = 0,
    ...rest
  } = input as Record<string, unknown>;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) return `There is no option "${unknown.slice(0, 40)}". There are: ${known.join(", ")}.`;
  if (typeof url !== "string" || url === "") return "Give `url`, a whole URL such as https://example.com/page.";
  const verb = typeof method === "string" ? method.toUpperCase() : "";
  if (verb !== "GET" && verb !== "HEAD") return "`method` can be GET or HEAD. This tool only reads.";
  if (format !== "markdown" && format !== "raw") return '`format` can be "markdown" or "raw".';
  if (typeof from !== "number" || !Number.isInteger(from) || from < 0)
    return "`from` must be a number of characters, from 0.";
  if (typeof headers !== "object" || headers === null || Array.isArray(headers))
    return "`headers` must be an object of texts.";
  for (const [name, value] of Object.entries(headers)) {
    if (!headerNames.includes(name.toLowerCase())) {
      return `The header "${name.slice(0, 40)}" cannot be set. ${headerNames.length === 0 ? "None can." : `These can: ${headerNames.join(", ")}.`}`;
    }
    if (typeof value !== "string") return `The header "${name}" must be a string.`;
  }
  return { url, method: verb, headers: headers as Record<string, string>, format, from };
}
