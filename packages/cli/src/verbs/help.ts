import { programHelp, verbHelp } from "../command/help-text.ts";
import { usageError } from "../command/usage-error.ts";
import type { Verb, VerbTable } from "../command/verb.ts";
import { print } from "../output/print.ts";

/** Takes the table, which names this verb too. */
export function createHelpVerb(verbTable: VerbTable): Verb {
  return {
    name: "help",
    summary: "show help for sandpiper or a verb",
    operands: ["[VERB]", "[ACTION]"],
    choices: Object.keys(verbTable),
    options: [],
    async run({ operands: [name, action] }) {
      const verb = await verbTable[name ?? ""]?.();
      if (verb !== undefined) await print(verbHelp(action === undefined ? verb : actionOf(verb, action)));
      else await print(programHelp(await Promise.all(Object.values(verbTable).map((load) => load()))));
    },
  };
}

function actionOf({ name, actions = [] }: Verb, action: string): Verb {
  const found = actions.find((candidate) => candidate.name === `${name} ${action}`);
  if (found !== undefined) return found;
  const hint = `run "sandpiper ${name} --help" for help`;
  throw usageError(`help: ${name} has no action ${JSON.stringify(action)}`, hint);
}
