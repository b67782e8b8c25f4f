/** How large a picture is, in pixels. */
export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** So much of a file is looked at: a JPEG may have a long preview in front of its size. */
export const IMAGE_HEAD_BYTES = 65_536;

/** The size of a PNG, GIF, WebP or JPEG, from its first bytes; undefined when they do not say. Never throws. */
export function imageSize(bytes: Uint8Array): ImageSize | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, IMAGE_HEAD_BYTES));
  try {
    return sane(png(view) ?? gif(view) ?? webp(view) ?? jpeg(view));
  } catch {
    // Read past the end: the file is cut, or no picture.
    return undefined;
  }
}

function sane(size: ImageSize | undefined): ImageSize | undefined {
  return size !== undefined && size.width > 0 && size.height > 0 ? size : undefined;
}

function png(view: DataView): ImageSize | undefined {
  if (view.getUint32(0) !== 0x89504e47) return undefined;
  return { width: view.getUint32(16), height: view.getUint32(20) };
}

function gif(view: DataView): ImageSize | undefined {
  if (tag(view, 0) !== "GIF8") return undefined;
  return { width: view.getUint16(6, true), height: view.getUint16(8, true) };
}

function webp(view: DataView): ImageSize | undefined {
  if (tag(view, 0) !== "RIFF" || tag(view, 8) !== "WEBP") return undefined;
  const form = tag(view, 12);
  if (form === "VP8 ") return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
  if (form === "VP8L") {
    const bits = view.getUint32(21, true);
    return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 };
  }
  if (form === "VP8X") return { width: (view.getUint32(24, true) & 0xffffff) + 1, height: uint24(view, 27) + 1 };
  return undefined;
}

function jpeg(view: DataView): ImageSize | undefined {
  if (view.getUint16(0) !== 0xffd8) return undefined;
  let at = 2;
  for (;;) {
    if (view.getUint8(at) !== 0xff) return undefined;
    const marker = view.getUint8(at + 1);
    if (isFrame(marker)) return { height: view.getUint16(at + 5), width: view.getUint16(at + 7) };
    at += 2 + view.getUint16(at + 2);
  }
}

/** The frame headers are 0xC0 to 0xCF, but for three of them that are tables. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

function uint24(view: DataView, at: number): number {
  return view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
}

function tag(view: DataView, at: number): string {
  return String.fromCharCode(...[0, 1, 2, 3].map((index) => view.getUint8(at + index)));
}
