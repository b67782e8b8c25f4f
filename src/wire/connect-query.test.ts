import { expect, test } from "vitest";
import { parseConnectQuery } from "./connect-query.ts";
import { MAX_ID_LENGTH } from "./id.ts";

const longest = "x".repeat(MAX_ID_LENGTH);

test.each([
  ["?_pk=abc&token=t", "abc", "json"],
  ["", undefined, "json"],
  ["?", undefined, "json"],
  ["?_pk=", undefined, "json"],
  [`?_pk=${longest}`, longest, "json"],
  [`?_pk=${longest}x`, undefined, "json"],
  ["?_pk=a%20b", "a b", "json"],
  ["?_pk=a&_pk=b", "a", "json"],
  ["?_pk=%E0%A4%A", "\ufffd%A", "json"],
  ["?_pk=a&__agents_transport=capnweb", "a", "capnweb"],
  ["?_pk=a&__agents_transport=other", "a", "json"],
])("%j", (search, connectionId, transport) => {
  expect(parseConnectQuery(search)).toEqual({ connectionId, transport });
  expect(parseConnectQuery(new URLSearchParams(search))).toEqual({ connectionId, transport });
});
