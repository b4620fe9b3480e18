import type { Verb } from "../command/verb.ts";
import { parseNumber } from "../options/number-option.ts";
import { progressOf, quietOption } from "../options/quiet-option.ts";
import { ownFrom, ownOptions } from "../options/sandbox-options.ts";
import { print } from "../output/print.ts";

export const forkVerb: Verb = {
  name: "fork",
  usage: "[OPTIONS] SANDBOX",
  summary: "make sandboxes that go on from where one is, and print their ids",
  options: [
    { name: "count", value: "N", summary: "how many (1)" },
    {
      name: "checkpoint",
      value: "CHECKPOINT",
      summary: "begin there, at an id, the beginning of one, or a name (now)",
    },
    ...ownOptions,
    { name: "json", summary: "print the sandboxes as one JSON array" },
    quietOption,
  ],
  operands: { min: 1, max: 1, example: "sandpiper fork SANDBOX" },
  details: `The original is not touched. Each fork has its own id, and goes on with the original's files and, where the provider
saves memory, with its running processes. Labels are the original's unless others are given.

Example:
  for id in $(sandpiper fork build --count 4); do sandpiper exec $id -- ./try; done`,
  async run(arguments_) {
    const own = { ...ownFrom(arguments_), count: parseNumber(arguments_, "count", { example: 4 }) };
    const wanted = arguments_.get("checkpoint");
    const { requireNode } = await import("../target/find-node.ts");
    const { findSandbox } = await import("../target/find-sandbox.ts");
    const { findCheckpoint } = await import("../target/find-checkpoint.ts");
    const { Progress } = await import("../output/progress.ts");
    const sandbox = await findSandbox(await requireNode(), arguments_.operands[0] as string);
    const checkpoint = wanted === undefined ? undefined : (await findCheckpoint(sandbox, wanted)).id;
    using progress = new Progress("forking", progressOf(arguments_));
    const forks = await sandbox.fork({ ...own, checkpoint });
    progress[Symbol.dispose]();
    if (arguments_.has("json")) await print(`${JSON.stringify(forks.map(({ info }) => info))}\n`);
    else await print(forks.map(({ id }) => `${id}\n`).join(""));
    return 0;
  },
};
