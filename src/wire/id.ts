/** The longest id, method or tool name that a client may send, in UTF-16 units. */
export const MAX_ID_LENGTH = 256;

/** Ids are keys of rows: half a surrogate pair would not come back from SQLite as it went in. */
export function isId(value: unknown, maxLength = MAX_ID_LENGTH): value is string {
  return typeof value === "string" && value !== "" && value.length <= maxLength && value.isWellFormed();
}
