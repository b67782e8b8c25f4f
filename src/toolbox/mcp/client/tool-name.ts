/** What providers take: a longer name, or one with other letters, fails the whole request. */
const MAX_TOOL_NAME = 64;
const HASH_LENGTH = 6;

/**
 * A name for a tool that every provider takes: `tool_<id>_<name>`, and a hash behind it where letters had to be replaced or
 * left out. The same tools, asked for in the same order, have the same names each time.
 * @param taken the names given so far; the new one is added.
 * @param others ids of the agent's other servers: a server cannot call a tool so that it looks like one of theirs
 */
export function nameTool(serverId: string, tool: string, taken: Set<string>, others: readonly string[] = []): string {
  const prefix = prefixOf(serverId);
  const whole = prefix + tool;
  const plain = whole.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  const isTheirs = others.map(prefixOf).some((one) => one.length > prefix.length && plain.startsWith(one));
  const fits = plain === whole && plain.length <= MAX_TOOL_NAME && !isTheirs;
  let name = fits ? plain : withHash(isTheirs ? prefix : plain, `${serverId} ${tool}`);
  for (let n = 2; taken.has(name); n++) name = withHash(plain, `${serverId} ${tool} ${n}`);
  taken.add(name);
  return name;
}

function prefixOf(serverId: string): string {
  return `tool_${serverId.replaceAll("-", "")}_`;
}

function withHash(plain: string, text: string): string {
  return `${plain.slice(0, MAX_TOOL_NAME - HASH_LENGTH - 1)}_${hash(text)}`;
}

/** FNV-1a: only to tell names apart. */
function hash(text: string): string {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return value.toString(36).padStart(HASH_LENGTH, "0").slice(-HASH_LENGTH);
}
