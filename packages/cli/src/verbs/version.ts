import manifest from "../../package.json" with { type: "json" };
import { print } from "../print.ts";
import type { Verb } from "../verb.ts";

export const versionVerb: Verb = {
  name: "version",
  usage: "",
  summary: "show the version",
  options: [],
  words: [],
  async run() {
    await print(`sandpiper ${manifest.version}\n`);
    return 0;
  },
};
