import { parseArgs } from "node:util";
import { nearest } from "./nearest.ts";
import type { Option } from "./option.ts";
import { usageError } from "./usage-error.ts";
import type { Verb } from "./verb.ts";

/** Understood by every verb. */
export const helpOption: Option = { name: "help", summary: "show this help" };

/** A verb's command line, split and checked against its options. */
export class Arguments {
  /** What stands after `--`, or from the first word that is no option. */
  readonly words: readonly string[];
  readonly #values: ReadonlyMap<string, readonly string[]>;

  constructor(words: readonly string[], values: ReadonlyMap<string, readonly string[]>) {
    this.words = words;
    this.#values = values;
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** The value of an option; undefined when it was not given. */
  get(name: string): string | undefined {
    return this.#values.get(name)?.at(-1);
  }

  /** The values of a repeatable option, in the order given. */
  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }
}

type Shape = Pick<Verb, "name" | "options" | "words">;

export function parseArguments(verb: Shape, argv: readonly string[]): Arguments {
  const options = [...verb.options, helpOption];
  const types = options.map(({ name, value }) => [name, { type: value === undefined ? "boolean" : "string" }] as const);
  const { tokens } = parseArgs({
    args: [...argv],
    options: { ...Object.fromEntries(types), help: { type: "boolean", short: "h" } },
    strict: false,
    tokens: true,
  });
  const values = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind === "positional") return finish(verb, argv.slice(token.index), values);
    if (token.kind === "option-terminator") return finish(verb, argv.slice(token.index + 1), values);
    const option = options.find(({ name }) => name === token.name);
    if (option === undefined) throw unknownOption(verb, token.rawName);
    if (values.has(option.name) && option.value !== undefined && option.isRepeatable !== true) {
      throw usageError(`${token.rawName} was given twice`, "give it once");
    }
    values.set(option.name, [...(values.get(option.name) ?? []), checkedValue(option, token)]);
  }
  return finish(verb, [], values);
}

interface OptionToken {
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

function checkedValue(option: Option, token: OptionToken): string {
  if (option.value === undefined) {
    if (token.value !== undefined) throw usageError(`${token.rawName} takes no value`, `write ${token.rawName} alone`);
    return "";
  }
  const example = `--${option.name} ${option.value}`;
  if (token.value === undefined) throw usageError(`${token.rawName} needs a value`, `write ${example}`);
  if (token.inlineValue !== true && token.value.startsWith("-")) {
    const hint = `write ${example}, or --${option.name}=${token.value} if that is its value`;
    throw usageError(`${token.rawName} needs a value, but ${token.value} follows it`, hint);
  }
  if (option.choices !== undefined && !option.choices.includes(token.value)) {
    const meant = nearest(token.value, option.choices);
    const choices = `it is one of ${option.choices.join(", ")}`;
    throw usageError(
      `${token.rawName} ${token.value}: there is no such ${option.name}`,
      meant ? `did you mean ${meant}?` : choices,
    );
  }
  return token.value;
}

function finish(verb: Shape, words: readonly string[], values: ReadonlyMap<string, readonly string[]>): Arguments {
  const isWrong = verb.words !== undefined && !values.has("help") && words.find((word) => !verb.words?.includes(word));
  if (typeof isWrong === "string") {
    const meant = nearest(isWrong, verb.words ?? []);
    const hint = meant === undefined ? `see sandpiper ${verb.name} --help` : `did you mean ${meant}?`;
    throw usageError(`${verb.name} does not know what to do with ${JSON.stringify(isWrong)}`, hint);
  }
  return new Arguments(words, values);
}

function unknownOption(verb: Shape, rawName: string): Error {
  const meant = nearest(
    rawName.replace(/^-+/, ""),
    [...verb.options, helpOption].map(({ name }) => name),
  );
  const help = `see sandpiper ${verb.name} --help`;
  const hint = meant === undefined ? help : `did you mean --${meant}?`;
  return usageError(`${verb.name} has no option ${rawName}`, hint);
}
