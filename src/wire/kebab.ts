/**
 * A class name as it stands in URLs and the identity frame: the public clients' rule, letter for letter, odd results included
 * (`AIChatAgent` is `a-i-chat-agent`). It cannot be inverted; look names up in a {@link classTable}.
 */
export function kebabCase(name: string): string {
  const shouted = name === name.toUpperCase() && name !== name.toLowerCase();
  if (shouted) return name.toLowerCase().replaceAll("_", "-");
  return name
    .replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    .replace(/^-/, "")
    .replaceAll("_", "-")
    .replace(/-$/, "");
}
