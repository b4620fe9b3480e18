import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { sandboxOptions } from "../options/sandbox-options.ts";

export const runVerb: Verb = {
  name: "run",
  usage: "[OPTIONS] -- CMD [ARGS…]",
  summary: "run one command in a new sandbox that is gone afterwards",
  options: [
    ...sandboxOptions,
    { name: "timeout", value: "SECONDS", summary: "kill the command after this time (no limit)" },
    {
      name: "download",
      value: "SRC:DST",
      isRepeatable: true,
      completes: "path",
      summary: "copy a file or directory out when the command has ended",
    },
    { name: "json", summary: "print one JSON object instead of the command's output" },
  ],
  endsLikeItsCommand: true,
  details: `
The sandbox is made on the node when one runs, otherwise in this very program. Input
and output pass through as bytes, while the command runs. Ctrl-C kills it and removes the sandbox.

Exit codes:
  0–255  the command's own; 128 + N when signal N ended it
  124    the command was killed by --timeout
  125    Sandpiper failed
  126    the command is no program; 127 there is no such command
  137    the command was killed, for example for using more than --memory
  2      the command line is wrong

Examples:
  sandpiper run -- python3 -c 'print(6 * 7)'
  sandpiper run --memory 512 --timeout 10 --upload ./job:/home/user/job --cwd /home/user/job -- ./job.sh
  tar c src | sandpiper run -- sh -c 'tar x && make -C src'
  sandpiper run --provider docker --image node:24 --mount .:/src -- node --test /src
  sandpiper run --json -- sh -c 'exit 3'`,
  async run(arguments_) {
    if (arguments_.words.length === 0) {
      throw usageError("there is no command to run", "for example sandpiper run -- python3 -c 'print(6 * 7)'");
    }
    const { runVisibly } = await import("../run/run-visibly.ts");
    const { runInNewSandbox } = await import("../run/run-in-new-sandbox.ts");
    return runVisibly(arguments_, runInNewSandbox);
  },
};
