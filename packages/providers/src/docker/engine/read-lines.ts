/**
 * The lines of an engine's answer as they come. Not readline's: what fails after its reader has left is an uncaught
 * exception there.
 */
export async function* readLines(stream: AsyncIterable<Uint8Array | string>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of stream) {
    const lines = `${rest}${typeof piece === "string" ? piece : decoder.decode(piece, { stream: true })}`.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") yield line;
  }
  if (rest.trim() !== "") yield rest;
}
