/** A new random id. Ids are names only: order always comes from a sequence number of the store. */
export function newId(prefix?: string): string {
  const id = crypto.randomUUID();
  return prefix === undefined ? id : `${prefix}_${id}`;
}
