import type { Verb } from "../command/verb.ts";
import { ownFrom, ownOptions } from "../options/sandbox-options.ts";
import { quietOption } from "../options/shared-options.ts";
import { parseNumber } from "../options/values.ts";
import { withProgress } from "../output/progress.ts";
import { showResult } from "../output/show.ts";
import { findCheckpoint } from "../target/find-checkpoint.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const forkVerb: Verb = {
  name: "fork",
  summary: "create copies of a sandbox and print their IDs",
  operands: ["SANDBOX"],
  options: [
    { name: "count", value: "N", default: "1", summary: "number of copies" },
    {
      name: "checkpoint",
      value: "CHECKPOINT",
      summary: "copy this checkpoint instead of the current state: an ID, the beginning of an ID, or a name",
    },
    ...ownOptions,
    { name: "json", summary: "print the sandboxes as a JSON array" },
    quietOption,
  ],
  details: `The original does not change. Each copy has its own ID, the original's files and, if the provider saves memory, its
running processes. Copies have the original's labels unless you set --label.`,
  examples: ["for id in $(sandpiper fork build --count 4); do sandpiper exec $id -- ./try; done"],
  learnMore: "docs/checkpoints.md",
  async run(arguments_) {
    const own = { ...ownFrom(arguments_), count: parseNumber(arguments_, "count", { example: 4 }) };
    const wanted = arguments_.get("checkpoint");
    const sandbox = await firstSandbox(arguments_);
    const checkpoint = wanted === undefined ? undefined : (await findCheckpoint(sandbox, wanted)).id;
    const forks = await withProgress("forking", arguments_, () => sandbox.fork({ ...own, checkpoint }));
    await showResult(arguments_, { json: forks.map(({ info }) => info), lines: forks.map(({ id }) => id) });
  },
};
