const MAX_SIDE_PX = 1600;
const QUALITY = 0.82;

/** The picture in a size that is enough to look at. The same file when the browser cannot read it. */
export async function shrinkImage(file: File): Promise<File> {
  try {
    const picture = await createImageBitmap(file);
    const scale = Math.min(1, MAX_SIDE_PX / Math.max(picture.width, picture.height));
    const canvas = new OffscreenCanvas(Math.round(picture.width * scale), Math.round(picture.height * scale));
    canvas.getContext("2d")?.drawImage(picture, 0, 0, canvas.width, canvas.height);
    picture.close();
    const type = file.type === "image/png" ? "image/webp" : "image/jpeg";
    const blob = await canvas.convertToBlob({ type, quality: QUALITY });
    return blob.size < file.size ? new File([blob], file.name, { type: blob.type }) : file;
  } catch {
    return file;
  }
}
