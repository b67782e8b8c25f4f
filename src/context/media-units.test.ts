import { expect, test } from "vitest";
import { unitsOfFile, unitsOfMedia } from "./media-units.ts";

/** A PNG as far as its size. */
function pngOf(width: number, height: number): Uint8Array {
  const bytes = new Uint8Array(24);
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const view = new DataView(bytes.buffer);
  view.setUint32(16, width);
  view.setUint32(20, height);
  return bytes;
}

const base64 = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes));

test("a picture counts by its size in pixels", () => {
  const image = (width: number, height: number) => unitsOfMedia({ mediaType: "image/png", size: { width, height } });
  expect(image(300, 250)).toBe(100);
  expect(image(1_000, 750)).toBe(1_000);
  // Small and large ones have a bound.
  expect(image(1, 1)).toBe(85);
  expect(image(10_000, 10_000)).toBe(1_600);
  // A long strip is made smaller, and stays cheap.
  expect(image(15_680, 100)).toBe(85);
});

test("a picture of unknown size counts as a large one", () => {
  expect(unitsOfMedia({ mediaType: "image" })).toBe(unitsOfMedia({ mediaType: "IMAGE/PNG", bytes: 5_000_000 }));
  expect(unitsOfMedia({ mediaType: "image/webp" })).toBe(1_600);
});

test("a PDF counts by its pages, as far as its bytes tell", () => {
  const pdf = (bytes?: number) => unitsOfMedia({ mediaType: "application/pdf", bytes });
  expect(pdf(10_000)).toBe(2_000);
  expect(pdf(500_000)).toBe(20_000);
  expect(pdf(1_000_000_000)).toBe(200_000);
  expect(pdf()).toBe(10_000);
});

test("sound and film count by their length, as far as their bytes tell", () => {
  expect(unitsOfMedia({ mediaType: "audio/mpeg", bytes: 960_000 })).toBe(1_920);
  expect(unitsOfMedia({ mediaType: "audio/wav", bytes: 960_000 })).toBe(480);
  expect(unitsOfMedia({ mediaType: "audio" })).toBe(1_920);
  expect(unitsOfMedia({ mediaType: "video/mp4", bytes: 7_200_000 })).toBe(18_000);
  expect(unitsOfMedia({ mediaType: "video/mp4" })).toBe(18_000);
});

test("a file of text counts as its text", () => {
  for (const mediaType of ["text/plain", "text", "application/json", "application/ld+json", "application/xml"]) {
    expect(unitsOfMedia({ mediaType, bytes: 4_000 })).toBe(1_000);
  }
  expect(unitsOfFile("text/plain", { type: "text", text: "漢字" })).toBe(2);
  // A drawing is shown as a picture.
  expect(unitsOfMedia({ mediaType: "image/svg+xml", bytes: 4_000_000 })).toBe(1_600);
});

test("a file of unknown kind has a fixed weight", () => {
  expect(unitsOfMedia({})).toBe(1_600);
  expect(unitsOfMedia({ mediaType: "application/zip", bytes: 1 })).toBe(1_600);
});

test("the same file weighs the same however it is held", () => {
  const bytes = pngOf(300, 250);
  const text = base64(bytes);
  const url = `data:image/png;base64,${text}`;
  const forms: unknown[] = [
    bytes,
    bytes.buffer,
    text,
    url,
    new URL(url),
    { type: "data", data: bytes },
    { type: "data", data: text },
    { type: "url", url: new URL(url) },
    { type: "url", url },
  ];
  expect(forms.map((data) => unitsOfFile("image/png", data))).toEqual(forms.map(() => 100));
});

test("what is behind an address is not known", () => {
  for (const data of [
    "https://example.com/a.png",
    new URL("http://example.com/a.png"),
    { type: "url", url: new URL("https://example.com/a.png") },
    { type: "reference", reference: { openai: "file-1" } },
    { openai: "file-1" },
    undefined,
    null,
    7,
  ]) {
    expect(unitsOfFile("image/png", data)).toBe(1_600);
  }
});

test("what is no picture does not stop it", () => {
  expect(unitsOfFile("image/png", "%%% no base64 %%%")).toBe(1_600);
  expect(unitsOfFile("image/png", "data:image/png;base64")).toBe(1_600);
  expect(unitsOfFile("image/png", new Uint8Array())).toBe(1_600);
  expect(unitsOfFile(undefined, "AAAA")).toBe(1_600);
});

test("a large picture is looked at only at its head", () => {
  const head = base64(pngOf(300, 250));
  expect(unitsOfFile("image/png", head + "A".repeat(8_000_000))).toBe(100);
});
