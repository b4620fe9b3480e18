import type { ChildProcess } from "node:child_process";
import { constants } from "node:fs";
import { SandboxError } from "@sandpiper/core";
import { openUntrusted } from "./untrusted-file.ts";

const MAX_EXPLANATION_CHARACTERS = 2000;
/** Enough for as many characters of any length. */
const MAX_READ_BYTES = 4 * MAX_EXPLANATION_CHARACTERS;

/** The last output of an emulator and of its guest's kernel. */
export async function lastOutput(logs: readonly string[]): Promise<string> {
  const texts = await Promise.all(logs.map((path) => readEnd(path).catch(() => "")));
  // A truncated log that its writer continues begins with zeros.
  return texts.join("\n").replaceAll("\0", "").trim().slice(-MAX_EXPLANATION_CHARACTERS);
}

async function readEnd(path: string): Promise<string> {
  await using file = await openUntrusted(path, constants.O_RDONLY);
  const { size } = await file.stat();
  const { buffer, bytesRead } = await file.read({
    buffer: Buffer.alloc(Math.min(size, MAX_READ_BYTES)),
    position: Math.max(size - MAX_READ_BYTES, 0),
  });
  return buffer.toString("utf8", 0, bytesRead);
}

/** Returns a check that throws once the emulator has ended. */
export function watchStart(child: ChildProcess, emulator: string, explain: () => Promise<string>): () => Promise<void> {
  let failure: string | undefined;
  child.once("error", (error) => {
    failure = error.message;
  });
  child.once("exit", (code, ended) => {
    failure = ended === null ? `${emulator} exited with ${code}` : `${emulator} was ended by ${ended}`;
  });
  return async () => {
    if (failure !== undefined) throw startFailed(failure, await explain());
  };
}

export function startFailed(failure: string, explanation: string): SandboxError {
  return new SandboxError("boot_failed", {
    message: `the virtual machine did not start: ${failure}${explanation && `: ${explanation}`}`,
    hint: "run `sandpiper doctor`; if it finds no problem, report this as a bug",
  });
}
