/** What models can look at, by how such files begin. */
const signatures: readonly (readonly [mediaType: string, at: number, bytes: readonly number[]])[] = [
  ["image/png", 0, [0x89, 0x50, 0x4e, 0x47]],
  ["image/jpeg", 0, [0xff, 0xd8, 0xff]],
  ["image/gif", 0, [0x47, 0x49, 0x46, 0x38]],
  ["image/webp", 8, [0x57, 0x45, 0x42, 0x50]],
  ["application/pdf", 0, [0x25, 0x50, 0x44, 0x46, 0x2d]],
];

/** The media type of a picture or a PDF, by its first bytes; undefined for everything else. Names can say anything. */
export function viewableType(bytes: Uint8Array): string | undefined {
  return signatures.find(([, at, mark]) => mark.every((byte, index) => bytes[at + index] === byte))?.[0];
}
