import { useSyncExternalStore } from "react";
import { useLasting } from "./use-lasting.ts";

/** A connection takes a moment to be made; that is not being offline. */
const PATIENCE_MS = 1200;

/** Whether to tell the user that nothing gets through now. */
export function useOffline(isConnected: boolean): boolean {
  const isOnline = useSyncExternalStore(subscribe, () => navigator.onLine);
  const isAway = useLasting(!isConnected, PATIENCE_MS);
  return isAway || !isOnline;
}

function subscribe(listener: () => void): () => void {
  addEventListener("online", listener);
  addEventListener("offline", listener);
  return () => {
    removeEventListener("online", listener);
    removeEventListener("offline", listener);
  };
}
