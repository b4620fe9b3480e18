import { writeFully } from "./write-fully.ts";

/** Writes a text to standard output; somebody who stops reading it early has had enough. */
export async function print(text: string): Promise<void> {
  try {
    await writeFully(process.stdout, Buffer.from(text));
  } catch (error) {
    if (!isBrokenPipe(error)) throw error;
  }
}

export function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}
