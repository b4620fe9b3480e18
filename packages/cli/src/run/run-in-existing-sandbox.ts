import type { Arguments } from "../command/arguments.ts";
import { parseEnv } from "../options/env-option.ts";
import { runCommand } from "./run-command.ts";
import type { EndedRun, RunOptions } from "./run-visibly.ts";
import { stdinOfJob } from "./terminal-job.ts";
import { withExistingGuest } from "./with-existing-guest.ts";

/** Runs the command in a sandbox of the node, which stays. */
export async function runInExistingSandbox(
  arguments_: Arguments,
  { timeoutMs, interruption, onOutput }: RunOptions,
): Promise<EndedRun | undefined> {
  const env = parseEnv(arguments_.all("env"), process.env);
  const [cwd, user] = [arguments_.get("cwd"), arguments_.get("user")];
  const { operands, words: argv } = arguments_;
  return withExistingGuest(operands[0] as string, interruption, async (guest) => {
    const command = { argv, env, cwd, user, timeoutMs, stdin: stdinOfJob(), onOutput };
    return { outcome: await runCommand(guest, command), guest };
  });
}
