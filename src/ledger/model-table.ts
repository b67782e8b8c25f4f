/**
 * What a table says about a model with these names. Patterns: an id with its versions (`gpt-5`), an id at a provider
 * (`openai/gpt-5`), a beginning (`ollama/*`). The longest that fits wins.
 */
export function fromTable<T>(table: Readonly<Record<string, T>>, names: readonly string[]): T | undefined {
  let best: string | undefined;
  for (const pattern of Object.keys(table)) {
    if (best !== undefined && pattern.length <= best.length) continue;
    if (names.some((name) => fits(pattern, name))) best = pattern;
  }
  return best === undefined ? undefined : table[best];
}

/** `openai.responses/gpt-5` is also known as `openai/gpt-5` and as `gpt-5`. */
export function namesOf(model: string): string[] {
  const at = model.indexOf("/");
  if (at === -1) return [model];
  const provider = model.slice(0, at);
  const id = model.slice(at + 1);
  return [model, `${provider.split(".")[0]}/${id}`, id];
}

/** A date or a number behind a name makes it no other model. */
const version = /^[-@:](\d{4}-?\d{2}-?\d{2}|\d{2}-\d{2,4}|\d{3,8}|v\d+(:\d+)?|latest)$/;

function fits(pattern: string, name: string): boolean {
  if (pattern.endsWith("*")) return name.startsWith(pattern.slice(0, -1));
  return name === pattern || (name.startsWith(pattern) && version.test(name.slice(pattern.length)));
}
