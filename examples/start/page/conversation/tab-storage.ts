/** Where a tab keeps what only it needs; undefined where the browser does not allow it. */
export const tabStorage = storageOfTab();

function storageOfTab(): Storage | undefined {
  try {
    return sessionStorage;
  } catch {
    return undefined;
  }
}
