import type { Sandbox } from "@sandpiper/sdk";
import type { Arguments } from "../command/arguments.ts";
import { reportError } from "../command/report-error.ts";
import { withProgress } from "../output/progress.ts";
import { concurrently } from "../transfer/concurrently.ts";

/** Such work waits for the host more than for the node. */
const MAX_CONCURRENT = 8;

export interface EachSandboxOptions {
  readonly label: string;
  readonly arguments_: Arguments;
}

/** Does the same with several sandboxes. A failure is reported and sets the exit code, but does not stop the others. */
export async function eachSandbox(
  sandboxes: readonly Sandbox[],
  { label, arguments_ }: EachSandboxOptions,
  work: (sandbox: Sandbox) => Promise<unknown>,
): Promise<number> {
  let exitCode = 0;
  const workOn = async (sandbox: Sandbox) => {
    try {
      await work(sandbox);
    } catch (error) {
      exitCode = reportError(error, { endsLikeItsCommand: false });
    }
  };
  await withProgress(label, arguments_, () => concurrently(MAX_CONCURRENT, new Set(sandboxes), workOn));
  return exitCode;
}
