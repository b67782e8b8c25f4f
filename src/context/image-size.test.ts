import { expect, test } from "vitest";
import { imageSize } from "./media-units.ts";

const text = (value: string) => Array.from(value, (char) => char.charCodeAt(0));
const be16 = (value: number) => [value >> 8, value & 0xff];
const le16 = (value: number) => [value & 0xff, value >> 8];
const be32 = (value: number) => [...be16(value >>> 16), ...be16(value & 0xffff)];
const le24 = (value: number) => [...le16(value & 0xffff), value >> 16];
const zeros = (count: number): number[] => Array.from({ length: count }, () => 0);
const of = (...bytes: number[]) => imageSize(Uint8Array.from(bytes));

const png = [0x89, ...text("PNG\r\n\x1a\n"), ...be32(13), ...text("IHDR"), ...be32(1_920), ...be32(1_080)];
const gif = [...text("GIF89a"), ...le16(320), ...le16(200)];
const riff = (...rest: number[]) => [...text("RIFF"), ...zeros(4), ...text("WEBP"), ...rest];

test("each format says its size", () => {
  expect(of(...png)).toEqual({ width: 1_920, height: 1_080 });
  expect(of(...gif)).toEqual({ width: 320, height: 200 });
  const lossy = riff(...text("VP8 "), ...zeros(10), ...le16(640), ...le16(480));
  expect(of(...lossy)).toEqual({ width: 640, height: 480 });
  const bits = (800 - 1) | ((600 - 1) << 14);
  const lossless = riff(...text("VP8L"), ...zeros(4), 0x2f, ...le16(bits & 0xffff), ...le16(bits >>> 16));
  expect(of(...lossless)).toEqual({ width: 800, height: 600 });
  const extended = riff(...text("VP8X"), ...zeros(8), ...le24(70_000 - 1), ...le24(50_000 - 1));
  expect(of(...extended)).toEqual({ width: 70_000, height: 50_000 });
});

test("a JPEG is read over what is in front of its frame", () => {
  const app = [0xff, 0xe0, ...be16(2 + 300), ...zeros(300)];
  const table = [0xff, 0xc4, ...be16(2 + 20), ...zeros(20)];
  const frame = [0xff, 0xc2, ...be16(17), 8, ...be16(3_000), ...be16(4_000)];
  expect(of(0xff, 0xd8, ...app, ...table, ...frame)).toEqual({ width: 4_000, height: 3_000 });
});

test("a view into a larger buffer is read from its own beginning", () => {
  const larger = Uint8Array.from([1, 2, 3, ...gif, 9]);
  expect(imageSize(larger.subarray(3))).toEqual({ width: 320, height: 200 });
});

test("what says nothing has no size", () => {
  expect(of()).toBeUndefined();
  expect(of(...text("hello, this is no picture at all"))).toBeUndefined();
  expect(of(...riff(...text("VP9 "), ...zeros(20)))).toBeUndefined();
  expect(of(...png.slice(0, 16), ...be32(0), ...be32(0))).toBeUndefined();
  expect(of(0xff, 0xd8, 0x00, 0x00)).toBeUndefined();
});

test("a file that is cut has no size, wherever it is cut", () => {
  for (const whole of [png, gif]) {
    for (let end = 0; end < whole.length; end++) expect(of(...whole.slice(0, end))).toBeUndefined();
  }
  expect(of(0xff, 0xd8, 0xff, 0xe0, ...be16(60_000))).toBeUndefined();
});
