import { parseArguments } from "./arguments.ts";
import { nearest } from "./nearest.ts";
import { print } from "./print.ts";
import { reportError } from "./report-error.ts";
import { usageError } from "./usage-error.ts";
import type { Verb } from "./verb.ts";
import { verbTable } from "./verb-table.ts";

const synonyms: Readonly<Record<string, string>> = {
  "--help": "help",
  "-h": "help",
  "--version": "version",
  "-V": "version",
};

/** Runs one command line and returns the program's exit code. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  // Whoever writes hears of a failure from the write itself.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  try {
    const [first = "--help", ...rest] = argv;
    const verb = await findVerb(synonyms[first] ?? first);
    const arguments_ = parseArguments(verb, rest);
    if (!arguments_.has("help")) return await verb.run(arguments_);
    const { verbHelp } = await import("./help-text.ts");
    await print(verbHelp(verb));
    return 0;
  } catch (error) {
    return reportError(error);
  }
}

async function findVerb(name: string): Promise<Verb> {
  const load = Object.hasOwn(verbTable, name) ? verbTable[name] : undefined;
  if (load !== undefined) return load();
  const isOption = name.startsWith("-");
  const meant = nearest(
    name,
    [...Object.keys(verbTable), ...Object.keys(synonyms)].filter((known) => known.startsWith("-") === isOption),
  );
  const hint = meant === undefined ? "see sandpiper --help" : `did you mean sandpiper ${meant}?`;
  throw usageError(`there is no ${isOption ? "option" : "verb"} ${name}`, hint);
}
