/**
 * What ends with the scope that it was made in, however that is left: by its end, `return`, a throw or an abort.
 *
 *     using _ = defer(() => lock.release());
 *     await using _ = defer(async () => connection.close());
 *
 * `end` runs once; what it throws is thrown at the end of the scope.
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
