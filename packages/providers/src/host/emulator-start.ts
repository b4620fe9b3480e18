import type { ChildProcess } from "node:child_process";
import { readFile } from "node:fs/promises";
import { SandboxError } from "@sandpiper/core";

const MAX_EXPLANATION_CHARACTERS = 2000;

/** The last output of an emulator and of its guest's kernel. */
export async function lastOutput(logs: readonly string[]): Promise<string> {
  const texts = await Promise.all(logs.map((path) => readFile(path, "utf8").catch(() => "")));
  return texts.join("\n").trim().slice(-MAX_EXPLANATION_CHARACTERS);
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
