/** What an address is for. Only `public` ones may be reached without being named. */
export type AddressKind =
  | "public"
  | "unspecified"
  | "loopback"
  | "private"
  | "shared"
  | "link-local"
  | "metadata"
  | "multicast"
  | "documentation"
  | "reserved";

/** The 8 groups of an IPv6 address; an IPv4 address is the mapped one. */
type Groups = readonly number[];

/** Ranges of IPv4, the narrow ones first. */
const v4Ranges: readonly (readonly [base: string, bits: number, kind: AddressKind])[] = [
  ["169.254.169.254", 32, "metadata"],
  ["100.100.100.200", 32, "metadata"],
  ["192.0.0.192", 32, "metadata"],
  // Looks public: what virtual machines of one provider ask for their keys.
  ["168.63.129.16", 32, "metadata"],
  ["0.0.0.0", 8, "unspecified"],
  ["10.0.0.0", 8, "private"],
  ["100.64.0.0", 10, "shared"],
  ["127.0.0.0", 8, "loopback"],
  ["169.254.0.0", 16, "link-local"],
  ["172.16.0.0", 12, "private"],
  ["192.0.0.0", 24, "reserved"],
  ["192.0.2.0", 24, "documentation"],
  ["192.88.99.0", 24, "reserved"],
  ["192.168.0.0", 16, "private"],
  ["198.18.0.0", 15, "reserved"],
  ["198.51.100.0", 24, "documentation"],
  ["203.0.113.0", 24, "documentation"],
  ["224.0.0.0", 4, "multicast"],
  ["240.0.0.0", 4, "reserved"],
];

/** Ranges of IPv6, the narrow ones first. What is in none of them and not in 2000::/3 is reserved. */
const v6Ranges: readonly (readonly [base: string, bits: number, kind: AddressKind])[] = [
  ["::", 128, "unspecified"],
  ["::1", 128, "loopback"],
  ["fd00:ec2::254", 128, "metadata"],
  ["fd20:ce::254", 128, "metadata"],
  ["64:ff9b:1::", 48, "private"],
  ["100::", 64, "reserved"],
  ["2001::", 23, "reserved"],
  ["2001:db8::", 32, "documentation"],
  ["3fff::", 20, "documentation"],
  ["fc00::", 7, "private"],
  ["fe80::", 10, "link-local"],
  ["fec0::", 10, "private"],
  ["ff00::", 8, "multicast"],
];

/**
 * What kind of address a text is, or `undefined`. Takes every form that programs take: IPv4 also as one number, with fewer parts,
 * in hex and octal; IPv6 with brackets and zone. A mapped, NAT64 or 6to4 address is as private as the one it stands for.
 */
export function addressKind(text: string): AddressKind | undefined {
  const groups = parseAddress(text);
  return groups === undefined ? undefined : kindOf(groups);
}

/** Whether a text is anything but a public address. Also true for what is no address: resolve it before connecting. */
export function isPrivateAddress(text: string): boolean {
  return addressKind(text) !== "public";
}

/** One way to write each address, for comparing them; `undefined` when it is none. */
export function canonicalAddress(text: string): string | undefined {
  const groups = parseAddress(text);
  if (groups === undefined) return undefined;
  const v4 = mapped(groups);
  return v4 === undefined ? groups.map((group) => group.toString(16)).join(":") : dotted(v4);
}

function parseAddress(text: string): Groups | undefined {
  const bare = text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text;
  if (bare.includes(":")) return parseV6(bare.split("%", 1)[0] ?? "");
  const v4 = parseV4(bare);
  return v4 === undefined ? undefined : [0, 0, 0, 0, 0, 0xffff, v4 >>> 16, v4 & 0xffff];
}

/** As `inet_aton` reads it, and URLs do: 1 to 4 parts, each decimal, octal or hex; the last one fills what is left. */
function parseV4(text: string): number | undefined {
  if (!/^[0-9a-fx.]+$/i.test(text)) return undefined;
  const host = URL.parse(`http://${text}`)?.hostname ?? "";
  // A name can be made of the same letters.
  if (!/^\d+(\.\d+){3}$/.test(host)) return undefined;
  return host.split(".").reduce((value, part) => value * 0x100 + Number(part), 0);
}

function parseV6(text: string): Groups | undefined {
  if (!/^[0-9a-f:.]+$/i.test(text)) return undefined;
  const host = URL.parse(`http://[${text}]`)?.hostname.slice(1, -1);
  if (host === undefined) return undefined;
  const [head = [], tail = []] = host.split("::").map((half) => (half === "" ? [] : half.split(":")));
  const missing = Array<string>(8 - head.length - tail.length).fill("0");
  return [...head, ...missing, ...tail].map((group) => Number.parseInt(group, 16));
}

function kindOf(groups: Groups): AddressKind {
  const v4 = mapped(groups);
  if (v4 !== undefined) return kindOfV4(v4);
  for (const [base, bits, kind] of v6Ranges) if (isWithin(groups, base, bits)) return kind;
  const low = lowPair(groups, 6);
  // Translated by a gateway near us: it reaches what the last 32 bits say.
  if (isWithin(groups, "64:ff9b::", 96) || isWithin(groups, "::ffff:0:0:0", 96)) return kindOfV4(low);
  if (isWithin(groups, "::", 96)) return nonPublic(kindOfV4(low));
  if (isWithin(groups, "2002::", 16)) return nonPublic(kindOfV4(lowPair(groups, 1)));
  return isWithin(groups, "2000::", 3) ? "public" : "reserved";
}

/** Old ways to write an IPv4 address in IPv6, which nobody needs any more. */
function nonPublic(kind: AddressKind): AddressKind {
  return kind === "public" ? "reserved" : kind;
}

function kindOfV4(address: number): AddressKind {
  for (const [base, bits, kind] of v4Ranges) {
    const size = 2 ** (32 - bits);
    const start = parseV4(base) ?? 0;
    if (address >= start && address < start + size) return kind;
  }
  return "public";
}

function isWithin(groups: Groups, base: string, bits: number): boolean {
  const wanted = parseV6(base) ?? [];
  for (let index = 0; index < 8; index++) {
    const left = bits - index * 16;
    if (left <= 0) return true;
    const mask = left >= 16 ? 0xffff : (0xffff << (16 - left)) & 0xffff;
    if (((groups[index] ?? 0) & mask) !== ((wanted[index] ?? 0) & mask)) return false;
  }
  return true;
}

function mapped(groups: Groups): number | undefined {
  return isWithin(groups, "::ffff:0:0", 96) ? lowPair(groups, 6) : undefined;
}

function lowPair(groups: Groups, at: number): number {
  return (groups[at] ?? 0) * 0x1_0000 + (groups[at + 1] ?? 0);
}

function dotted(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join(".");
}
