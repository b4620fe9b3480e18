import type { Arguments } from "../command/arguments.ts";
import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { parseEnv } from "../options/env-option.ts";
import { quietOption } from "../options/quiet-option.ts";
import { commandOptions } from "../options/sandbox-options.ts";
import { print } from "../output/print.ts";

export const execVerb: Verb = {
  name: "exec",
  usage: "[OPTIONS] SANDBOX -- CMD [ARGS…]",
  summary: "run a command in a sandbox of the node",
  options: [
    ...commandOptions,
    { name: "timeout", value: "SECONDS", summary: "kill the command after this time (no limit)" },
    { name: "detach", summary: "print the process's id and let it run; see sandpiper logs" },
    { name: "json", summary: "print one JSON object instead of the command's output" },
    quietOption,
  ],
  operands: { min: 1, max: 1, example: "sandpiper exec SANDBOX -- CMD", takesCommand: true },
  endsLikeItsCommand: true,
  details: `
Input and output pass through as bytes, while the command runs. Ctrl-C kills it; the sandbox stays. Exit codes are those
of sandpiper run.

Examples:
  sandpiper exec my-sandbox -- python3 -c 'print(6 * 7)'
  sandpiper exec --detach my-sandbox -- python3 -m http.server`,
  async run(arguments_) {
    if (arguments_.words.length === 0) {
      throw usageError("there is no command to run", `for example sandpiper exec ${arguments_.operands[0]} -- ls -l`);
    }
    if (arguments_.has("detach")) return startDetached(arguments_);
    const { runVisibly } = await import("../run/run-visibly.ts");
    const { runInExistingSandbox } = await import("../run/run-in-existing-sandbox.ts");
    return runVisibly(arguments_, runInExistingSandbox);
  },
};

async function startDetached(arguments_: Arguments): Promise<number> {
  const { parseNumber } = await import("../options/number-option.ts");
  const timeoutSeconds = parseNumber(arguments_, "timeout", { decimals: 3, example: 30 });
  const env = parseEnv(arguments_.all("env"), process.env);
  const { requireNode } = await import("../target/find-node.ts");
  const { findSandbox } = await import("../target/find-sandbox.ts");
  const sandbox = await findSandbox(await requireNode(), arguments_.operands[0] as string);
  const process_ = await sandbox.start(arguments_.words, {
    env,
    cwd: arguments_.get("cwd"),
    user: arguments_.get("user"),
    timeoutMs: timeoutSeconds === undefined ? undefined : Math.round(timeoutSeconds * 1000),
  });
  const { id, pid } = process_;
  process_.detach();
  await print(arguments_.has("json") ? `${JSON.stringify({ id, pid })}\n` : `${id}\n`);
  return 0;
}
