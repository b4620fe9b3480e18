import { SandboxError } from "@sandpiper/core";
import { runProgram } from "../../host/run-program.ts";

/** Copies a disk without the holes in it; where the filesystem can, nothing is copied before it is changed. */
export async function copySparse(from: string, to: string): Promise<void> {
  const env = { PATH: process.env["PATH"] ?? "" };
  const { exitCode, failure } = await runProgram(["cp", "--reflink=auto", "--sparse=always", from, to], { env });
  if (exitCode === 0) return;
  throw new SandboxError("internal", {
    reason: "copy_failed",
    message: `${from} could not be copied to ${to}: ${failure ?? `cp ended with ${exitCode}`}`,
    hint: "see that there is room on the disk",
  });
}
