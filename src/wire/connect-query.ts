import { MAX_ID_LENGTH } from "./id.ts";

/** What the query of a connecting client says to the host. Everything else in it belongs to the app. */
interface ConnectQuery {
  /**
   * What the client calls itself (`_pk`). Stable across reconnects, but neither unique nor proof of anything. Undefined when
   * missing, empty or longer than {@link MAX_ID_LENGTH}: the host makes one up.
   */
  readonly connectionId: string | undefined;
  /** `capnweb` when the client wants the Cap'n Web wire; close with `closeCode.unsupportedTransport`. */
  readonly transport: "json" | "capnweb";
}

/** Reads the query of an upgrade request (`URL.search` or `URL.searchParams`). Never throws. */
export function parseConnectQuery(search: string | URLSearchParams): ConnectQuery {
  const query = typeof search === "string" ? new URLSearchParams(search) : search;
  const id = query.get("_pk") ?? "";
  return {
    connectionId: id !== "" && id.length <= MAX_ID_LENGTH ? id : undefined,
    transport: query.get("__agents_transport") === "capnweb" ? "capnweb" : "json",
  };
}
