import { parseArgs } from "node:util";
import { nearest } from "./nearest.ts";
import type { Option } from "./option.ts";
import { usageError } from "./usage-error.ts";
import type { Operands, Verb } from "./verb.ts";

/** Understood by every verb. */
export const helpOption: Option = { name: "help", short: "h", summary: "show this help" };

/** A verb's command line, split and checked against its options. */
export class Arguments {
  /** What stands after `--`, or from the first word that is neither option nor operand. */
  readonly words: readonly string[];
  /** What the verb is about. */
  readonly operands: readonly string[];
  readonly #values: Values;

  constructor(words: readonly string[], values: Values, operands: readonly string[] = []) {
    this.words = words;
    this.operands = operands;
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

type Shape = Pick<Verb, "name" | "options" | "words" | "operands" | "passesOnArguments">;
type Values = ReadonlyMap<string, readonly string[]>;

export function parseArguments(verb: Shape, argv: readonly string[]): Arguments {
  if (verb.passesOnArguments === true) return new Arguments(argv, new Map());
  const options = [...verb.options, helpOption];
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(options.map((option) => [option.name, parseOption(option)])),
    strict: false,
    tokens: true,
  });
  const values = new Map<string, string[]>();
  const operands: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") {
      if (operands.length === (verb.operands?.max ?? 0))
        return finish(verb, { words: argv.slice(token.index), values, operands });
      operands.push(token.value);
      continue;
    }
    if (token.kind === "option-terminator")
      return finish(verb, { words: argv.slice(token.index + 1), values, operands });
    const option = options.find(({ name }) => name === token.name);
    if (option === undefined) throw unknownOption(verb, token.rawName);
    if (values.has(option.name) && option.value !== undefined && option.isRepeatable !== true) {
      throw usageError(`${token.rawName} was given twice`, "give it once");
    }
    values.set(option.name, [...(values.get(option.name) ?? []), checkedValue(option, token)]);
  }
  return finish(verb, { words: [], values, operands });
}

function parseOption({ value, short }: Option): { type: "boolean" | "string"; short?: string } {
  return { type: value === undefined ? "boolean" : "string", ...(short === undefined ? {} : { short }) };
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

interface Parsed {
  readonly words: readonly string[];
  readonly values: Values;
  readonly operands: readonly string[];
}

function finish(verb: Shape, { words, values, operands }: Parsed): Arguments {
  if (values.has("help")) return new Arguments(words, values, operands);
  if (verb.operands !== undefined) return finishOperands(verb, verb.operands, { words, values, operands });
  const wrong = verb.words === undefined ? undefined : words.find((word) => !verb.words?.includes(word));
  if (wrong !== undefined) throw unknownWord(verb, wrong);
  return new Arguments(words, values);
}

function finishOperands(verb: Shape, { min, max, example, takesCommand }: Operands, parsed: Parsed): Arguments {
  // Without a command, -- only says that no option follows.
  const operands = takesCommand === true ? parsed.operands : [...parsed.operands, ...parsed.words];
  const excess = operands[max];
  if (excess !== undefined) throw unknownWord(verb, excess);
  if (operands.length < min) throw usageError(`${verb.name} needs to know more`, `write ${example}`);
  return new Arguments(takesCommand === true ? parsed.words : [], parsed.values, operands);
}

function unknownWord({ name, words }: Shape, word: string): Error {
  const meant = nearest(word, words ?? []);
  const hint = meant === undefined ? `see sandpiper ${name} --help` : `did you mean ${meant}?`;
  return usageError(`${name} does not know what to do with ${JSON.stringify(word)}`, hint);
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
