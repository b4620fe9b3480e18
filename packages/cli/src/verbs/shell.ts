import type { Arguments } from "../command/arguments.ts";
import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { commandOptions, sandboxOptions } from "../options/sandbox-options.ts";

export const shellVerb: Verb = {
  name: "shell",
  usage: "[SANDBOX] [OPTIONS] [-- CMD [ARGS…]]",
  summary: "open a terminal in a sandbox of the node, or in a new one that is gone afterwards",
  options: sandboxOptions,
  operands: { min: 0, max: 1, example: "sandpiper shell", takesCommand: true },
  endsLikeItsCommand: true,
  details: `
Without a command it opens the shell of the user inside ($SHELL), else /bin/bash, or /bin/sh where there is none.
Every key goes inside, Ctrl-C too; leave with exit or Ctrl-D. The exit code is that of the shell; when Sandpiper fails it is 125. A new sandbox is made on the node
when one runs, otherwise in this very program.

Examples:
  sandpiper shell
  sandpiper shell my-sandbox
  sandpiper shell --memory 1024 --upload ./project:/home/user/project --cwd /home/user/project
  sandpiper shell -- python3`,
  async run(arguments_) {
    if (!process.stdin.isTTY) {
      throw usageError("shell needs a terminal, and standard input is none", "use sandpiper run -- CMD");
    }
    if (arguments_.operands.length > 0) requireNothingNew(arguments_);
    const { openShell } = await import("../shell/open-shell.ts");
    return openShell(arguments_);
  },
};

/** What shapes a sandbox cannot be said of one that exists. */
function requireNothingNew(arguments_: Arguments): void {
  const isForCommand = (name: string) => name === "quiet" || commandOptions.some((option) => option.name === name);
  const wrong = sandboxOptions.find(({ name }) => arguments_.has(name) && !isForCommand(name));
  if (wrong === undefined) return;
  const message = `--${wrong.name} is about a new sandbox, and ${arguments_.operands[0]} exists`;
  throw usageError(message, `leave --${wrong.name} out, or write sandpiper shell [OPTIONS] -- CMD for a new sandbox`);
}
