import manifest from "../../package.json" with { type: "json" };
import type { Verb } from "../command/verb.ts";
import { print } from "../output/print.ts";

export const versionVerb: Verb = {
  name: "version",
  summary: "print the version",
  options: [],
  async run() {
    await print(`sandpiper ${manifest.version}\n`);
  },
};
