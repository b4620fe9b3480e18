import type { Arguments } from "../arguments.ts";
import { parseEnv } from "../env-option.ts";
import type { Interruption } from "../interruption.ts";
import { noticeOf } from "../notice.ts";
import { createOptionsFrom } from "../sandbox-options.ts";
import { isForegroundJob } from "../terminal-job.ts";
import { download } from "../transfer/download.ts";
import { parseTransfer } from "../transfer/transfer.ts";
import { withSandbox } from "../with-sandbox.ts";
import { type OutputHandler, type RunOutcome, runCommand } from "./run-command.ts";

/** What happened in a sandbox that is gone again. */
export interface EndedRun {
  readonly outcome: RunOutcome;
  readonly sandboxId: string;
  readonly provider: string;
}

export interface RunInNewSandboxOptions {
  readonly timeoutMs: number | undefined;
  readonly interruption: Interruption;
  readonly onOutput: OutputHandler;
}

/** Makes a sandbox, brings files in, runs the command, brings files out. Undefined when the user interrupted it. */
export async function runInNewSandbox(
  arguments_: Arguments,
  { timeoutMs, interruption, onOutput }: RunInNewSandboxOptions,
): Promise<EndedRun | undefined> {
  const env = parseEnv(arguments_.all("env"), process.env);
  const options = createOptionsFrom(arguments_);
  const downloads = arguments_.all("download").map((text) => parseTransfer("download", text, options));
  const stdin = process.stdin.isTTY && !isForegroundJob() ? undefined : process.stdin;

  return withSandbox(arguments_, interruption, async (sandbox) => {
    const outcome = await runCommand(sandbox, { argv: arguments_.words, env, timeoutMs, stdin, onOutput });
    // Out of memory may have ended the whole sandbox, files included.
    const isGone = outcome.endedBy === "out_of_memory";
    for (const transfer of isGone ? [] : downloads) await download(sandbox, transfer, noticeOf(arguments_));
    return { outcome, sandboxId: sandbox.id, provider: sandbox.provider };
  });
}
