import { expect, test } from "vitest";
import { addressKind, canonicalAddress, isPrivateAddress } from "./address.ts";

const kinds: readonly (readonly [string, string])[] = [
  // The own machine, in every spelling that programs take.
  ["127.0.0.1", "loopback"],
  ["127.255.255.254", "loopback"],
  ["2130706433", "loopback"],
  ["0x7f000001", "loopback"],
  ["0x7f.1", "loopback"],
  ["0177.0.0.1", "loopback"],
  ["017700000001", "loopback"],
  ["127.1", "loopback"],
  ["127.0.1", "loopback"],
  ["127.0.0.1.", "loopback"],
  ["::1", "loopback"],
  ["[::1]", "loopback"],
  ["0:0:0:0:0:0:0:1", "loopback"],
  ["::ffff:127.0.0.1", "loopback"],
  ["::ffff:7f00:1", "loopback"],
  ["::ffff:0:127.0.0.1", "loopback"],
  ["::127.0.0.1", "loopback"],
  ["64:ff9b::127.0.0.1", "loopback"],
  ["2002:7f00:1::", "loopback"],
  ["0.0.0.0", "unspecified"],
  ["0", "unspecified"],
  ["0.1.2.3", "unspecified"],
  ["::", "unspecified"],
  // Where machines of clouds get their keys.
  ["169.254.169.254", "metadata"],
  ["0xa9fea9fe", "metadata"],
  ["2852039166", "metadata"],
  ["::ffff:169.254.169.254", "metadata"],
  ["64:ff9b::a9fe:a9fe", "metadata"],
  ["2002:a9fe:a9fe::1", "metadata"],
  ["fd00:ec2::254", "metadata"],
  ["168.63.129.16", "metadata"],
  ["100.100.100.200", "metadata"],
  // Private networks.
  ["10.0.0.1", "private"],
  ["10.255.255.255", "private"],
  ["172.16.0.1", "private"],
  ["172.31.255.255", "private"],
  ["192.168.1.1", "private"],
  ["::ffff:10.1.2.3", "private"],
  ["64:ff9b::10.0.0.1", "private"],
  ["64:ff9b:1::1", "private"],
  ["2002:c0a8:101::1", "private"],
  ["fc00::1", "private"],
  ["fdff:ffff::1", "private"],
  ["fec0::1", "private"],
  ["100.64.0.1", "shared"],
  ["100.127.255.255", "shared"],
  ["169.254.1.1", "link-local"],
  ["fe80::1", "link-local"],
  ["fe80::1%eth0", "link-local"],
  ["febf::1", "link-local"],
  // For nobody.
  ["224.0.0.1", "multicast"],
  ["239.255.255.250", "multicast"],
  ["ff02::1", "multicast"],
  ["255.255.255.255", "reserved"],
  ["240.0.0.1", "reserved"],
  ["192.0.0.1", "reserved"],
  ["192.88.99.1", "reserved"],
  ["198.18.0.1", "reserved"],
  ["198.19.255.255", "reserved"],
  ["192.0.2.1", "documentation"],
  ["198.51.100.1", "documentation"],
  ["203.0.113.1", "documentation"],
  ["2001:db8::1", "documentation"],
  ["3fff::1", "documentation"],
  ["2001::1", "reserved"],
  ["2001:20::1", "reserved"],
  ["100::1", "reserved"],
  ["4000::1", "reserved"],
  ["2002:808:808::1", "reserved"],
  ["::8.8.8.8", "reserved"],
  // The others.
  ["8.8.8.8", "public"],
  ["1.1.1.1", "public"],
  ["172.15.0.1", "public"],
  ["172.32.0.1", "public"],
  ["100.63.0.1", "public"],
  ["100.128.0.1", "public"],
  ["169.253.1.1", "public"],
  ["134744072", "public"],
  ["2606:4700:4700::1111", "public"],
  ["::ffff:8.8.8.8", "public"],
  ["64:ff9b::8.8.8.8", "public"],
];

test.each(kinds)("%s is %s", (text, kind) => {
  expect(addressKind(text)).toBe(kind);
  expect(isPrivateAddress(text)).toBe(kind !== "public");
});

test.each([
  "",
  "example.com",
  "256.1.1.1",
  "1.2.3.4.5",
  "0x",
  "08.1.1.1",
  "1..2",
  "4294967296",
  ":::",
  "1::2::3",
  "::g",
  "1:2:3",
])("%j is no public address", (text) => {
  // `0x` is a zero for some programs.
  expect([undefined, "unspecified"]).toContain(addressKind(text));
  expect(isPrivateAddress(text)).toBe(true);
});

test("the same address is written in one way", () => {
  const same = ["127.0.0.1", "0x7f.1", "::ffff:127.0.0.1", "[::ffff:7f00:1]"].map(canonicalAddress);
  expect(new Set(same)).toEqual(new Set(["127.0.0.1"]));
  expect(canonicalAddress("[2606:4700::0001]")).toBe(canonicalAddress("2606:4700:0:0:0:0:0:1"));
  expect(canonicalAddress("example.com")).toBeUndefined();
});

test("a name made of the letters of hex numbers is no address", () => {
  expect(addressKind("ff.e.ab.de")).toBeUndefined();
});
