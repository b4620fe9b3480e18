import type { Verb } from "../command/verb.ts";
import { quietOption } from "../options/shared-options.ts";
import { parseDuration, parseNumber } from "../options/values.ts";
import { withProgress } from "../output/progress.ts";
import { showResult } from "../output/show.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const checkpointVerb: Verb = {
  name: "checkpoint",
  summary: "save a sandbox and print the checkpoint's ID",
  operands: ["SANDBOX"],
  options: [
    { name: "name", value: "NAME", summary: "name the checkpoint" },
    { name: "stop", summary: "stop the sandbox after saving it" },
    {
      name: "ttl",
      value: "DURATION",
      summary: "delete the checkpoint after DURATION, such as 90 (seconds), 10m or 2h",
    },
    { name: "keep-last", value: "N", summary: "delete all but the N newest checkpoints of the sandbox" },
    { name: "json", summary: "print the checkpoint as a JSON object" },
    quietOption,
  ],
  details: `Saves the files and, if the provider supports it, the memory with all running processes; "fidelity" in the JSON output
tells which. Start a stopped sandbox again with "sandpiper resume".`,
  examples: ["sandpiper checkpoint build --name before-tests", "sandpiper checkpoint build --stop"],
  learnMore: "docs/checkpoints.md",
  async run(arguments_) {
    const options = {
      name: arguments_.get("name"),
      stop: arguments_.has("stop") ? true : undefined,
      ttlMs: parseDuration(arguments_, "ttl"),
      keepLast: parseNumber(arguments_, "keep-last", { example: 3 }),
    };
    const sandbox = await firstSandbox(arguments_);
    const saved = await withProgress("saving", arguments_, () => sandbox.checkpoint(options));
    await showResult(arguments_, { json: saved, lines: [saved.id] });
  },
};
