import type { Arguments } from "../command/arguments.ts";
import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { commandOptions, sandboxOptions } from "../options/sandbox-options.ts";

export const shellVerb: Verb = {
  name: "shell",
  summary: "open a terminal in an existing or a temporary sandbox",
  operands: ["[SANDBOX]"],
  command: "optional",
  options: sandboxOptions,
  endsLikeItsCommand: true,
  details: `Without SANDBOX, creates a sandbox on the node if one is running, otherwise in this process, and destroys it when the
shell ends.

Without CMD, starts $SHELL of the sandbox, else /bin/bash or /bin/sh. Every key goes to the sandbox,
including Ctrl-C; leave with "exit" or Ctrl-D. The exit code is that of the shell, or 125 if Sandpiper fails.`,
  examples: [
    "sandpiper shell",
    "sandpiper shell my-sandbox",
    "sandpiper shell --memory 1024 --upload ./project:/srv/project --cwd /srv/project",
    "sandpiper shell -- python3",
  ],
  async run(arguments_) {
    if (!process.stdin.isTTY) {
      throw usageError("shell: standard input is not a terminal", 'use "sandpiper run -- CMD" instead');
    }
    if (arguments_.operands.length > 0) requireNothingNew(arguments_);
    const { openShell } = await import("../shell/open-shell.ts");
    return openShell(arguments_);
  },
};

/** Options that create a sandbox cannot change one that exists. */
function requireNothingNew(arguments_: Arguments): void {
  const isForCommand = (name: string) => name === "quiet" || commandOptions.some((option) => option.name === name);
  const wrong = sandboxOptions.find(({ name }) => arguments_.has(name) && !isForCommand(name));
  if (wrong === undefined) return;
  const message = `shell: option --${wrong.name} applies to a new sandbox, but ${arguments_.operands[0]} is an existing one`;
  throw usageError(message, `remove --${wrong.name}, or write "sandpiper shell [OPTIONS] -- CMD" for a new sandbox`);
}
