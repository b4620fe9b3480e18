import { parseArguments } from "./command/arguments.ts";
import { nearest } from "./command/nearest.ts";
import { reportError } from "./command/report-error.ts";
import { usageError } from "./command/usage-error.ts";
import type { Verb } from "./command/verb.ts";
import { COMPLETE_NAMES } from "./completion/complete-names.ts";
import { print } from "./output/print.ts";
import { verbTable } from "./verb-table.ts";

const synonyms: Readonly<Record<string, string>> = {
  "--help": "help",
  "-h": "help",
  "--version": "version",
  "-V": "version",
};

/** Runs one command line and returns the program's exit code. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  // Each write reports its own failure.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  let verb: Verb | undefined;
  try {
    const [first = "--help", ...rest] = argv;
    if (first === COMPLETE_NAMES) return await printNames(rest);
    verb = await findVerb(synonyms[first] ?? first);
    if (verb.actions === undefined) return await runVerb(verb, rest);
    const [action = "--help", ...arguments_] = rest;
    return await runVerb(findAction(verb, verb.actions, action), action.startsWith("-") ? rest : arguments_);
  } catch (error) {
    return reportError(error, { endsLikeItsCommand: verb?.endsLikeItsCommand === true });
  }
}

/** Prints names for a completion script. Failures print nothing: the user is typing a command line. */
async function printNames([name = "", ...rest]: readonly string[]): Promise<number> {
  try {
    const verb = await findVerb(name);
    const [action = "", ...words] = rest;
    const syntax = verb.actions === undefined ? verb : findAction(verb, verb.actions, action);
    const { completeNames } = await import("./completion/complete-names.ts");
    const { findNode } = await import("./target/find-node.ts");
    const names = await completeNames(syntax, verb.actions === undefined ? rest : words, findNode);
    await print(names.map((each) => `${each}\n`).join(""));
  } catch {
    return 1;
  }
  return 0;
}

async function runVerb(verb: Verb, argv: readonly string[]): Promise<number> {
  const arguments_ = parseArguments(verb, argv);
  if (!arguments_.has("help") && verb.run !== undefined) return (await verb.run(arguments_)) ?? 0;
  const { verbHelp } = await import("./command/help-text.ts");
  await print(verbHelp(verb));
  return 0;
}

/** The verb itself when an option follows, which can only be --help. */
function findAction(verb: Verb, actions: readonly Verb[], name: string): Verb {
  if (name.startsWith("-")) return verb;
  const action = actions.find((candidate) => candidate.name === `${verb.name} ${name}`);
  if (action !== undefined) return action;
  const known = actions.map((candidate) => candidate.name.slice(verb.name.length + 1));
  const meant = nearest(name, known);
  const hint =
    meant === undefined ? `use one of ${known.join(", ")}` : `did you mean "sandpiper ${verb.name} ${meant}"?`;
  throw usageError(`${verb.name}: unknown action ${JSON.stringify(name)}`, hint);
}

async function findVerb(name: string): Promise<Verb> {
  const load = Object.hasOwn(verbTable, name) ? verbTable[name] : undefined;
  if (load !== undefined) return load();
  const isOption = name.startsWith("-");
  const meant = nearest(
    name,
    [...Object.keys(verbTable), ...Object.keys(synonyms)].filter((known) => known.startsWith("-") === isOption),
  );
  const hint = meant === undefined ? 'run "sandpiper --help" to list the verbs' : `did you mean "sandpiper ${meant}"?`;
  throw usageError(`unknown ${isOption ? "option" : "verb"} ${JSON.stringify(name)}`, hint);
}
