import { SandboxError } from "@sandpiper/core";
import { runProgram } from "../../host/run-program.ts";

/** Copies a sparse disk, without copying data where the filesystem supports it. */
export async function copySparse(from: string, to: string): Promise<void> {
  const env = { PATH: process.env["PATH"] ?? "" };
  const { exitCode, failure } = await runProgram(["cp", "--reflink=auto", "--sparse=always", from, to], { env });
  if (exitCode === 0) return;
  throw new SandboxError("copy_failed", {
    message: `${from} could not be copied to ${to}: ${failure ?? `cp ended with ${exitCode}`}`,
  });
}
