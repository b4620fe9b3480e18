import type { ProcessHandle } from "../process/process-handle.ts";

/** Prints `1`, `2`, `3`… until the file `stop` exists, so that a gap or a repetition shows. */
export const COUNT = 'i=0; while [ ! -e stop ]; do i=$((i+1)); echo "$i"; sleep 0.02; done';

/** Reads that many lines, and returns the offset of the next one. */
export async function readLines(process: ProcessHandle, count: number): Promise<{ text: string; offset: number }> {
  const decoder = new TextDecoder();
  let text = "";
  let offset = 0;
  for await (const chunk of process.output) {
    text += decoder.decode(chunk.bytes, { stream: true });
    offset = chunk.offset + chunk.bytes.length;
    if (text.endsWith("\n") && text.split("\n").length > count) break;
  }
  return { text, offset };
}

/** As many numbered lines as the text has. */
export function numbers(text: string): string {
  const count = text.split("\n").length - 1;
  return Array.from({ length: count }, (_, k) => `${k + 1}\n`).join("");
}
