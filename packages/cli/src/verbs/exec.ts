import type { Arguments } from "../command/arguments.ts";
import type { Verb } from "../command/verb.ts";
import { commandFrom, commandOptions } from "../options/sandbox-options.ts";
import { languageOption, quietOption, timeoutOption } from "../options/shared-options.ts";
import { parseDuration } from "../options/values.ts";
import { showResult } from "../output/show.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const execVerb: Verb = {
  name: "exec",
  summary: "run a command in an existing sandbox",
  operands: ["SANDBOX"],
  command: "required",
  options: [
    ...commandOptions,
    timeoutOption,
    languageOption,
    { name: "detach", summary: "print the process ID and leave the command running" },
    { name: "json", summary: "print a JSON object instead of the command's output" },
    quietOption,
  ],
  endsLikeItsCommand: true,
  details: `Input and output are streamed as bytes. Ctrl-C kills the command, and the sandbox stays. The exit codes are those of
"sandpiper run". Read the output of a detached command with "sandpiper logs".`,
  examples: [
    "sandpiper exec my-sandbox -- python3 -c 'print(6 * 7)'",
    "sandpiper exec my-sandbox --language python - < job.py",
    "sandpiper exec --detach my-sandbox -- python3 -m http.server",
  ],
  async run(arguments_) {
    if (arguments_.has("detach")) return startDetached(arguments_);
    const { runVisibly } = await import("../run/run-visibly.ts");
    const { runInExistingSandbox } = await import("../run/run-in-sandbox.ts");
    return runVisibly(arguments_, runInExistingSandbox);
  },
};

async function startDetached(arguments_: Arguments): Promise<number> {
  const options = { ...commandFrom(arguments_), timeoutMs: parseDuration(arguments_, "timeout") };
  const { readJob } = await import("../run/read-job.ts");
  const { nodeGuest } = await import("../guest/node-guest.ts");
  const { program } = await readJob(arguments_);
  const process_ = await nodeGuest(await firstSandbox(arguments_)).start(program, options);
  const { id, pid } = process_;
  process_.detach();
  await showResult(arguments_, { json: { id, pid }, lines: [id] });
  return 0;
}
