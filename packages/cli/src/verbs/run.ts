import type { Verb } from "../command/verb.ts";
import { sandboxOptions } from "../options/sandbox-options.ts";
import { languageOption, timeoutOption } from "../options/shared-options.ts";

export const runVerb: Verb = {
  name: "run",
  summary: "run a command in a temporary sandbox",
  command: "required",
  options: [
    ...sandboxOptions,
    timeoutOption,
    languageOption,
    {
      name: "download",
      value: "SRC:DST",
      isRepeatable: true,
      completes: "path",
      summary: "copy a file or directory out of the sandbox after the command ends",
    },
    { name: "json", summary: "print a JSON object instead of the command's output" },
  ],
  endsLikeItsCommand: true,
  details: `Creates the sandbox on the node if one is running, otherwise in this process, and destroys it when the command ends.
Input and output are streamed as bytes. Ctrl-C kills the command.

With --language, CMD is the file with the source code. The code's own input is empty if the code comes from standard input.`,
  exitCodes: [
    ["0–255", "the command's own exit code; 128 + N if signal N ended it"],
    ["2", "the command line is wrong"],
    ["124", "--timeout killed the command"],
    ["125", "Sandpiper failed"],
    ["126", "the command is not executable"],
    ["127", "the command was not found"],
    ["137", "the command was killed, for example for exceeding --memory"],
  ],
  examples: [
    "sandpiper run -- python3 -c 'print(6 * 7)'",
    "sandpiper run --memory 512 --upload ./job:/srv/job --cwd /srv/job -- ./job.sh",
    "sandpiper run --network allow=@pypi -- sh -c 'python3 -m venv v && v/bin/pip install requests'",
    "tar c src | sandpiper run -- sh -c 'tar x && make -C src'",
    "sandpiper run --provider docker --image node:24 --mount .:/src -- node /src",
    "echo 'print(6 * 7)' | sandpiper run --language python -",
    "sandpiper run --language typescript job.ts < input",
    "sandpiper run --json -- sh -c 'exit 3'",
  ],
  learnMore: "docs/cli.md",
  async run(arguments_) {
    const { runVisibly } = await import("../run/run-visibly.ts");
    const { runInNewSandbox } = await import("../run/run-in-sandbox.ts");
    return runVisibly(arguments_, runInNewSandbox);
  },
};
