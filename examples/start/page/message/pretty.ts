const MAX_BRIEF = 80;

/** A value as people read it: text as it is, everything else as indented JSON. */
export function pretty(value: unknown): string {
  if (value === undefined) return "–";
  return typeof value === "string" ? value : JSON.stringify(value, undefined, 2);
}

/** The value in a few words, for one line. Empty for an empty object. */
export function brief(value: unknown): string {
  if (value === undefined || value === null) return "";
  const text = typeof value === "object" ? Object.values(value).map(short).join(", ") : short(value);
  return text.length > MAX_BRIEF ? `${text.slice(0, MAX_BRIEF - 1)}…` : text;
}

/** `deleteFiles` is "delete files". */
export function inWords(name: string): string {
  return name
    .replaceAll(/([a-z\d])([A-Z])/g, "$1 $2")
    .replaceAll(/[_-]+/g, " ")
    .toLowerCase();
}

function short(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(short).join(", ");
  return JSON.stringify(value) ?? "";
}
