import type { Verb } from "../command/verb.ts";
import { quietOption, sandboxJsonOption } from "../options/shared-options.ts";
import { withProgress } from "../output/progress.ts";
import { showResult } from "../output/show.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const rebuildVerb: Verb = {
  name: "rebuild",
  summary: "recreate the container from the current image, keeping volumes",
  operands: ["SANDBOX"],
  options: [sandboxJsonOption, quietOption],
  details: `Keeps /.data, /workspace and caches. Ends all processes and discards all other changes. Also repairs a container that
has failed.`,
  examples: ["sandpiper rebuild build"],
  learnMore: "docs/docker.md",
  async run(arguments_) {
    const sandbox = await firstSandbox(arguments_);
    const { token: _, ...info } = await withProgress("rebuilding", arguments_, () => sandbox.rebuild());
    await showResult(arguments_, { json: info, lines: [] });
  },
};
