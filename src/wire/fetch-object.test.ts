import { expect, test } from "vitest";
import { isRequest, isResponse } from "./fetch-object.ts";

test("responses and requests are told apart, also when the global classes were replaced after they were made", () => {
  const response = Response.json({});
  const request = new Request("http://agent.invalid/");
  const own = { Response: globalThis.Response, Request: globalThis.Request };
  class Other {}
  Object.assign(globalThis, { Response: Other, Request: Other });
  try {
    expect([isResponse(response), isRequest(response)]).toEqual([true, false]);
    expect([isResponse(request), isRequest(request)]).toEqual([false, true]);
  } finally {
    Object.assign(globalThis, own);
  }
});

test.each([undefined, null, true, "text", {}, { headers: {} }, { status: 200, body: null }, []])(
  "%o is neither",
  (value) => {
    expect([isResponse(value), isRequest(value)]).toEqual([false, false]);
  },
);
