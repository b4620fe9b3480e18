import { sandboxOptions } from "../sandbox-options.ts";
import { usageError } from "../usage-error.ts";
import type { Verb } from "../verb.ts";

export const shellVerb: Verb = {
  name: "shell",
  usage: "[OPTIONS] [-- CMD [ARGS…]]",
  summary: "open a terminal in a new sandbox that is gone afterwards",
  options: sandboxOptions,
  details: `
Without a command it opens /bin/bash, or /bin/sh where there is none. Every key goes inside, Ctrl-C too; leave with
exit or Ctrl-D. The exit code is that of the shell; when Sandpiper fails it is 125.

Examples:
  sandpiper shell
  sandpiper shell --memory 1024 --upload ./project:/home/user/project --cwd /home/user/project
  sandpiper shell -- python3`,
  async run(arguments_) {
    if (!process.stdin.isTTY) {
      throw usageError("shell needs a terminal, and standard input is none", "use sandpiper run -- CMD");
    }
    const { openShell } = await import("../shell/open-shell.ts");
    return openShell(arguments_);
  },
};
