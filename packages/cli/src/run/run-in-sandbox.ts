import type { Arguments } from "../command/arguments.ts";
import { commandFrom, createOptionsFrom } from "../options/sandbox-options.ts";
import { parseEnv } from "../options/values.ts";
import { noticeOf } from "../output/print.ts";
import { Progress, progressOf } from "../output/progress.ts";
import { download } from "../transfer/download.ts";
import { parseTransfer } from "../transfer/transfer.ts";
import { runCommand } from "./run-command.ts";
import type { EndedRun, RunOptions } from "./run-visibly.ts";
import { withExistingGuest, withNewGuest } from "./with-guest.ts";

/** Creates a sandbox, uploads, runs the command, downloads. Undefined when the user interrupted it. */
export async function runInNewSandbox(
  arguments_: Arguments,
  { job, timeoutMs, interruption, onOutput }: RunOptions,
): Promise<EndedRun | undefined> {
  const env = parseEnv(arguments_);
  const options = createOptionsFrom(arguments_);
  const downloads = arguments_.all("download").map((text) => parseTransfer("download", text, options));

  return withNewGuest(arguments_, interruption, async (guest) => {
    const outcome = await runCommand(guest, { ...job, env, timeoutMs, onOutput });
    using progress = new Progress("downloading", progressOf(arguments_));
    const notice = noticeOf(arguments_);
    for (const transfer of outcome.hasSandboxEnded ? [] : downloads)
      await download(guest, transfer, { notice, progress });
    return { outcome, guest };
  });
}

/** Runs the command in a sandbox of the node, which stays. */
export async function runInExistingSandbox(
  arguments_: Arguments,
  { job, timeoutMs, interruption, onOutput }: RunOptions,
): Promise<EndedRun | undefined> {
  const command = { ...commandFrom(arguments_), ...job, timeoutMs, onOutput };
  return withExistingGuest(arguments_.operands[0] as string, interruption, async (guest) => {
    return { outcome: await runCommand(guest, command), guest };
  });
}
