/**
 * Runs `end` once when the scope is left, by its end, `return`, a throw or an abort. What it throws is thrown there.
 *
 *     using _ = defer(() => lock.release());
 *     await using _ = defer(async () => connection.close());
 */
export function defer(end: () => Promise<void>): AsyncDisposable;
export function defer(end: () => void): Disposable;
export function defer(end: () => void | Promise<void>): Disposable & AsyncDisposable {
  let over = false;
  const once = () => {
    if (over) return;
    over = true;
    return end();
  };
  return {
    [Symbol.dispose]: () => void once(),
    [Symbol.asyncDispose]: async () => once(),
  };
}
