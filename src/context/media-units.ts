import { IMAGE_HEAD_BYTES, imageSize, type ImageSize } from "./image-size.ts";
import { unitsOfText } from "./text-units.ts";

/** What is known about a file that is sent to a model. */
export interface Media {
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

/**
 * {@link unitsOfMedia} of a file as messages hold it: base64, bytes, a URL (also a data URL), a reference, or one of
 * these with a tag. What is behind an address is not looked at. Never throws.
 */
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
