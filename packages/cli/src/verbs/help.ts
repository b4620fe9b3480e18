import { programHelp, verbHelp } from "../command/help-text.ts";
import type { Verb } from "../command/verb.ts";
import { print } from "../output/print.ts";
import { verbTable } from "../verb-table.ts";

export const helpVerb: Verb = {
  name: "help",
  usage: "[VERB]",
  summary: "show what sandpiper, or one of its verbs, can do",
  options: [],
  words: Object.keys(verbTable),
  async run({ words: [name] }) {
    const verbs = await Promise.all(Object.values(verbTable).map((load) => load()));
    const verb = verbs.find((candidate) => candidate.name === name);
    await print(verb === undefined ? programHelp(verbs) : verbHelp(verb));
    return 0;
  },
};
