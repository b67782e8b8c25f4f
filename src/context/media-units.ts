import { unitsOfText } from "./text-units.ts";

/** How large a picture is, in pixels. */
interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** So much of a file is looked at: a JPEG may have a long preview in front of its size. */
const IMAGE_HEAD_BYTES = 65_536;

/** What is known about a file that is sent to a model. */
interface Media {
  /** As `image/png` or `image`; undefined when nobody said. */
  readonly mediaType?: string | undefined;
  readonly bytes?: number | undefined;
  /** Of a picture. */
  readonly size?: ImageSize | undefined;
}

/** What the largest picture costs that providers read as one; also what one of unknown size counts as. */
const IMAGE_UNITS = 1_600;
const SMALLEST_IMAGE_UNITS = 85;
/** Larger pictures are made smaller by providers before they are read. */
const IMAGE_LONG_EDGE = 1_568;
const PIXELS_PER_UNIT = 750;

/** A page is read as text and often as a picture too. */
const PDF_PAGE_UNITS = 2_000;
const PDF_PAGE_BYTES = 50_000;
const PDF_MAX_PAGES = 100;
const PDF_UNKNOWN_PAGES = 5;

/** About 32 tokens a second: of sound that is compressed, and of samples as they are. */
const AUDIO_BYTES_PER_UNIT = 500;
const SAMPLES_BYTES_PER_UNIT = 2_000;
/** A minute. */
const AUDIO_UNITS = 1_920;

/** About 300 tokens a second at a megabit a second. */
const VIDEO_BYTES_PER_UNIT = 400;
/** A minute. */
const VIDEO_UNITS = 18_000;

const TEXT_BYTES_PER_UNIT = 4;
/** Of what kind nobody knows. */
const OTHER_UNITS = 1_600;

const SAMPLES = /^audio\/(x-)?(wav|wave|aiff|pcm|l16)\b/;
const TEXT = /^(text(\/|$)|application\/(json|xml|yaml|x-yaml|javascript|typescript|x-sh|sql|csv)\b)|\+(json|xml)\b/;

/** About how many tokens a file costs, by its kind and size. Its bytes are not what it costs. */
export function unitsOfMedia({ mediaType = "", bytes, size }: Media): number {
  const type = mediaType.toLowerCase();
  // A drawing is a text, but is shown as a picture.
  if (type.startsWith("image")) return unitsOfImage(size);
  if (type.startsWith("audio")) {
    return per(bytes, SAMPLES.test(type) ? SAMPLES_BYTES_PER_UNIT : AUDIO_BYTES_PER_UNIT) ?? AUDIO_UNITS;
  }
  if (type.startsWith("video")) return per(bytes, VIDEO_BYTES_PER_UNIT) ?? VIDEO_UNITS;
  if (type.startsWith("application/pdf")) {
    return PDF_PAGE_UNITS * Math.min(per(bytes, PDF_PAGE_BYTES) ?? PDF_UNKNOWN_PAGES, PDF_MAX_PAGES);
  }
  if (TEXT.test(type)) return per(bytes, TEXT_BYTES_PER_UNIT) ?? OTHER_UNITS;
  return OTHER_UNITS;
}

/** {@link unitsOfMedia} of a file as messages hold it. What is behind an address is not looked at. Never throws. */
export function unitsOfFile(mediaType: string | undefined, data: unknown): number {
  if (typeof data === "object" && data !== null && "type" in data) {
    const tagged = data as { type: unknown; text?: unknown; data?: unknown; url?: unknown };
    if (tagged.type === "text" && typeof tagged.text === "string") return unitsOfText(tagged.text);
    if (tagged.type === "data") return unitsOfFile(mediaType, tagged.data);
    if (tagged.type === "url") return unitsOfFile(mediaType, tagged.url);
    return unitsOfMedia({ mediaType });
  }
  if (data instanceof URL) return unitsOfFile(mediaType, data.href);
  if (data instanceof ArrayBuffer) return unitsOfBytes(mediaType, new Uint8Array(data));
  if (data instanceof Uint8Array) return unitsOfBytes(mediaType, data);
  if (typeof data !== "string" || /^https?:/i.test(data)) return unitsOfMedia({ mediaType });
  const base64 = data.startsWith("data:") ? data.slice(data.indexOf(",") + 1) : data;
  return unitsOfMedia({ mediaType, bytes: Math.floor((base64.length * 3) / 4), size: sizeOf(mediaType, base64) });
}

function unitsOfImage(size: ImageSize | undefined): number {
  if (size === undefined) return IMAGE_UNITS;
  const scale = Math.min(1, IMAGE_LONG_EDGE / Math.max(size.width, size.height));
  const units = Math.ceil((size.width * scale * size.height * scale) / PIXELS_PER_UNIT);
  return Math.min(IMAGE_UNITS, Math.max(SMALLEST_IMAGE_UNITS, units));
}

function unitsOfBytes(mediaType: string | undefined, bytes: Uint8Array): number {
  const size = isImage(mediaType) ? imageSize(bytes) : undefined;
  return unitsOfMedia({ mediaType, bytes: bytes.byteLength, size });
}

function sizeOf(mediaType: string | undefined, base64: string): ImageSize | undefined {
  if (!isImage(mediaType)) return undefined;
  // Whole groups of four characters are whole bytes.
  const head = base64.slice(0, ((IMAGE_HEAD_BYTES * 4) / 3) & ~3);
  try {
    return imageSize(Uint8Array.from(atob(head), (char) => char.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

function isImage(mediaType: string | undefined): boolean {
  return mediaType?.toLowerCase().startsWith("image") === true;
}

function per(bytes: number | undefined, each: number): number | undefined {
  return bytes === undefined ? undefined : Math.ceil(bytes / each);
}

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
