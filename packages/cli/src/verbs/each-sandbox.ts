import type { Sandbox } from "@sandpiper/sdk";
import { reportError } from "../command/report-error.ts";
import { Progress, type ProgressOptions } from "../output/progress.ts";
import { concurrently } from "../transfer/concurrently.ts";

/** Such work waits for the host more than for the node. */
const AT_ONCE = 8;

export interface EachSandboxOptions extends ProgressOptions {
  /** What is being done. */
  readonly label: string;
}

/** Does the same with several. What fails is said and keeps none of the others from it; the exit code tells. */
export async function eachSandbox(
  sandboxes: readonly Sandbox[],
  { label, ...progress }: EachSandboxOptions,
  work: (sandbox: Sandbox) => Promise<unknown>,
): Promise<number> {
  using _ = new Progress(label, progress);
  let exitCode = 0;
  await concurrently(AT_ONCE, new Set(sandboxes), async (sandbox) => {
    try {
      await work(sandbox);
    } catch (error) {
      exitCode = reportError(error, { endsLikeItsCommand: false });
    }
  });
  return exitCode;
}
