/** How far Slack's clock and ours may be apart, and for how long a delivery that somebody has listened to can be used. */
const TOLERANCE_S = 5 * 60;
const SIGNATURE = /^v0=([0-9a-f]{64})$/;

/** Whether Slack has sent this, and not long ago. The comparison takes the same time whatever is given. */
export async function isSigned(secret: string, { headers }: Request, body: Uint8Array): Promise<boolean> {
  const time = headers.get("x-slack-request-timestamp") ?? "";
  const [, hex] = SIGNATURE.exec(headers.get("x-slack-signature") ?? "") ?? [];
  if (hex === undefined || !/^\d{1,12}$/.test(time)) return false;
  if (Math.abs(Date.now() / 1000 - Number(time)) > TOLERANCE_S) return false;
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const encoder = new TextEncoder();
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["verify"]);
  const given = Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const before = encoder.encode(`v0:${time}:`);
  const signed = new Uint8Array(before.length + body.length);
  signed.set(before);
  signed.set(body, before.length);
  return crypto.subtle.verify("HMAC", key, given, signed);
}
