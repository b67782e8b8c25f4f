/**
 * A class name as it stands in URLs and in the identity frame. It is the rule of the public clients, letter
 * for letter, odd results included (`AIChatAgent` is `a-i-chat-agent`): a nicer rule would not meet them.
 * It cannot be inverted; look names up in a {@link classTable} instead.
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
