import type { Arguments } from "../command/arguments.ts";
import { parseEnv } from "../options/env-option.ts";
import { progressOf } from "../options/quiet-option.ts";
import { createOptionsFrom } from "../options/sandbox-options.ts";
import { noticeOf } from "../output/notice.ts";
import { Progress } from "../output/progress.ts";
import { download } from "../transfer/download.ts";
import { parseTransfer } from "../transfer/transfer.ts";
import { runCommand } from "./run-command.ts";
import type { EndedRun, RunOptions } from "./run-visibly.ts";
import { stdinOfJob } from "./terminal-job.ts";
import { withGuest } from "./with-guest.ts";

/** Makes a sandbox, brings files in, runs the command, brings files out. Undefined when the user interrupted it. */
export async function runInNewSandbox(
  arguments_: Arguments,
  { timeoutMs, interruption, onOutput }: RunOptions,
): Promise<EndedRun | undefined> {
  const env = parseEnv(arguments_.all("env"), process.env);
  const options = createOptionsFrom(arguments_);
  const downloads = arguments_.all("download").map((text) => parseTransfer("download", text, options));

  return withGuest(arguments_, interruption, async (guest) => {
    const outcome = await runCommand(guest, { argv: arguments_.words, env, timeoutMs, stdin: stdinOfJob(), onOutput });
    // Out of memory may have ended the whole sandbox, files included.
    const isGone = outcome.endedBy === "out_of_memory";
    using progress = new Progress("downloading", progressOf(arguments_));
    const notice = noticeOf(arguments_);
    for (const transfer of isGone ? [] : downloads) await download(guest, transfer, { notice, progress });
    return { outcome, guest };
  });
}
