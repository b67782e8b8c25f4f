import { expect, test } from "vitest";
import { PerdureError } from "../../base/error.ts";
import { matchRule, matchTunnel, parseRule } from "./rule.ts";
import { parseTarget } from "./target.ts";

function matches(rule: string, url: string): boolean {
  const target = parseTarget(url);
  return "fault" in target ? false : matchRule([parseRule(rule)], target) !== undefined;
}

const allowed: readonly (readonly [string, string])[] = [
  ["api.example.com", "https://api.example.com/x?y=1"],
  ["api.example.com", "http://api.example.com/"],
  ["api.example.com", "https://API.EXAMPLE.COM./"],
  ["API.example.com.", "https://api.example.com/"],
  ["api.example.com", "https://api.example.com:443/"],
  ["api.example.com:8443", "https://api.example.com:8443/"],
  ["api.example.com:8443", "http://api.example.com:8443/"],
  ["*.example.com", "https://a.example.com/"],
  ["*.example.com", "https://a.b.example.com/"],
  ["https://api.example.com", "https://api.example.com/anything"],
  ["https://api.example.com/", "https://api.example.com/anything"],
  ["https://api.example.com:8443/v1/", "https://api.example.com:8443/v1/x"],
  ["https://api.example.com/v1/", "https://api.example.com/v1/"],
  ["https://api.example.com/v1", "https://api.example.com/v1"],
  ["https://api.example.com/v1", "https://api.example.com/v1/x"],
  ["https://*.example.com/v1/", "https://a.example.com/v1/x"],
  ["bücher.example", "https://xn--bcher-kva.example/"],
  ["xn--bcher-kva.example", "https://bücher.example/"],
  ["93.184.216.34", "https://93.184.216.34/"],
  ["93.184.216.34", "http://0x5d.184.216.34/"],
  ["[2606:4700::1]", "https://[2606:4700:0::1]/"],
];

test.each(allowed)("%s lets %s through", (rule, url) => {
  expect(matches(rule, url)).toBe(true);
});

const refused: readonly (readonly [string, string, string])[] = [
  ["a longer name", "api.example.com", "https://api.example.com.evil.test/"],
  ["a name in front", "api.example.com", "https://evil-api.example.com/"],
  ["a name glued on", "example.com", "https://notexample.com/"],
  ["below without a star", "example.com", "https://api.example.com/"],
  ["the name as a path", "api.example.com", "https://evil.test/api.example.com"],
  ["the name as a query", "api.example.com", "https://evil.test/?api.example.com"],
  ["the name as a fragment", "api.example.com", "https://evil.test#api.example.com"],
  ["a letter that only looks the same", "example.com", "https://ex\u0430mple.com/"],
  ["the name as user", "api.example.com", "https://api.example.com@evil.test/"],
  ["a user", "api.example.com", "https://user@api.example.com/"],
  ["a user and a password", "api.example.com", "https://user:pass@api.example.com/"],
  ["an empty user", "api.example.com", "https://@api.example.com/"],
  ["an empty user and password", "api.example.com", "https://:@api.example.com/"],
  ["a backslash for a slash", "evil.test", "https://evil.test\\@api.example.com/"],
  ["a line break in the name", "api.example.com", "https://api.exam\nple.com/"],
  ["a tab in the scheme", "api.example.com", "ht\ttps://api.example.com/"],
  ["a space in front", "api.example.com", " https://api.example.com/"],
  ["a zero byte", "api.example.com", "https://api.example.com/\u0000"],
  ["two dots at the end", "api.example.com", "https://api.example.com../"],
  ["another port", "api.example.com", "https://api.example.com:8443/"],
  ["http on the port of https", "api.example.com", "http://api.example.com:443/"],
  ["https on the port of http", "api.example.com", "https://api.example.com:80/"],
  ["the usual port for a rule with one", "api.example.com:8443", "https://api.example.com/"],
  ["http for an https rule", "https://api.example.com", "http://api.example.com/"],
  ["https for an http rule", "http://api.example.com", "https://api.example.com/"],
  ["the apex of a wildcard", "*.example.com", "https://example.com/"],
  ["an empty label before a wildcard", "*.example.com", "https://.example.com/"],
  ["a look-alike of a wildcard", "*.example.com", "https://aexample.com/"],
  ["more behind a wildcard", "*.example.com", "https://a.example.com.evil.test/"],
  ["ftp", "api.example.com", "ftp://api.example.com/"],
  ["file", "api.example.com", "file:///etc/passwd"],
  ["data", "api.example.com", "data:text/plain,x"],
  ["javascript", "api.example.com", "javascript:alert(1)"],
  ["blob", "api.example.com", "blob:https://api.example.com/x"],
  ["ws", "api.example.com", "ws://api.example.com/"],
  ["gopher", "api.example.com", "gopher://api.example.com/"],
  ["a relative URL", "api.example.com", "//api.example.com/"],
  ["another path", "https://api.example.com/v1/", "https://api.example.com/v2/"],
  ["a path that only begins so", "https://api.example.com/v1", "https://api.example.com/v10"],
  ["the path without its slash", "https://api.example.com/v1/", "https://api.example.com/v1"],
  ["the path in other case", "https://api.example.com/v1/", "https://api.example.com/V1/x"],
  ["dots in the path", "https://api.example.com/v1/", "https://api.example.com/v1/../admin"],
  ["encoded dots", "https://api.example.com/v1/", "https://api.example.com/v1/%2e%2e/v1/admin"],
  ["encoded dots in capitals", "https://api.example.com/v1/", "https://api.example.com/v1/%2E%2E/v1/admin"],
  ["half encoded dots", "https://api.example.com/v1/", "https://api.example.com/v1/.%2e/v1/admin"],
  ["an encoded slash", "https://api.example.com/v1/", "https://api.example.com/v1/..%2fadmin"],
  ["an encoded backslash", "https://api.example.com/v1/", "https://api.example.com/v1/..%5cadmin"],
  ["dots encoded twice", "https://api.example.com/v1/", "https://api.example.com/v1/%252e%252e/admin"],
  ["dots with a parameter", "https://api.example.com/v1/", "https://api.example.com/v1/..;/admin"],
  ["port 0", "api.example.com", "http://api.example.com:0/"],
  ["a port that is none", "api.example.com", "http://api.example.com:99999/"],
  ["another address", "93.184.216.34", "https://93.184.216.35/"],
  ["a mapped address for its IPv4", "93.184.216.34", "https://[::1]/"],
];

test.each(refused)("%s: %s refuses %s", (_what, rule, url) => {
  expect(matches(rule, url)).toBe(false);
});

test.each([
  ...[
    "",
    "*",
    "*.",
    "*.com",
    "**.example.com",
    "a.*.example.com",
    "api*.example.com",
    "*:443",
    "https://*",
    "https://*/",
  ],
  ...["ftp://example.com", "user@example.com", "https://u:p@example.com", "example.com/path", "https://example.com/?q"],
  ...["https://example.com/#f", "example.com:0", "example.com:99999", "example.com:x", "exa mple.com", "example.com\n"],
  ...[
    "https://example.com/a/../b",
    "https://example.com/%2e/",
    "https://example.com/a%2fb/",
    "2130706433",
    "0x7f.1",
    "127.1",
  ],
  ...["*.10.0.0.1", "*.[::1]", "[::1", "exa%6dple.com", "https://", "://x", "a..b", ".example.com", "\\\\host\\share"],
])("%j is no rule", (text) => {
  expect(() => parseRule(text)).toThrow(PerdureError);
  expect(
    PerdureError.is(
      thrownBy(() => parseRule(text)),
      "bad_config",
    ),
  ).toBe(true);
});

test("a tunnel needs a rule for host and port, without a path", () => {
  const open = (rule: string, host: string, port: number) => matchTunnel([parseRule(rule)], host, port) !== undefined;
  expect(open("api.example.com", "api.example.com", 443)).toBe(true);
  expect(open("api.example.com", "api.example.com", 80)).toBe(true);
  expect(open("api.example.com", "api.example.com", 22)).toBe(false);
  expect(open("https://api.example.com", "api.example.com", 80)).toBe(false);
  expect(open("http://api.example.com", "api.example.com", 443)).toBe(false);
  expect(open("api.example.com:8443", "api.example.com", 8443)).toBe(true);
  expect(open("api.example.com:8443", "api.example.com", 443)).toBe(false);
  expect(open("*.example.com", "a.example.com", 443)).toBe(true);
  expect(open("*.example.com", "example.com", 443)).toBe(false);
  expect(open("https://api.example.com/v1/", "api.example.com", 443)).toBe(false);
});

function thrownBy(run: () => unknown): unknown {
  try {
    run();
  } catch (thrown) {
    return thrown;
  }
  return undefined;
}
