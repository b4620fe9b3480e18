import { parseArgs } from "node:util";
import { nearest } from "./nearest.ts";
import { helpOption, type Option, operandsOf, type Syntax, usageOf } from "./syntax.ts";
import { invalidValue, usageError } from "./usage-error.ts";

/** A verb's command line, split and checked against its syntax. */
export class Arguments {
  /** The command to run; for a verb that passes its arguments on, all of them. */
  readonly words: readonly string[];
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

type Values = ReadonlyMap<string, readonly string[]>;

export function parseArguments(syntax: Syntax, argv: readonly string[]): Arguments {
  if (syntax.passesOnArguments === true) return new Arguments(argv, new Map());
  const options = [...syntax.options, helpOption];
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(options.map((option) => [option.name, parseOption(option)])),
    strict: false,
    tokens: true,
  });
  const { max } = operandsOf(syntax);
  const values = new Map<string, string[]>();
  const operands: string[] = [];
  let words: readonly string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional" && operands.length < max) {
      operands.push(token.value);
      continue;
    }
    if (token.kind !== "option") {
      words = argv.slice(token.kind === "positional" ? token.index : token.index + 1);
      break;
    }
    const option = options.find(({ name }) => name === token.name);
    if (option === undefined) throw unknownOption(syntax, token.rawName);
    if (values.has(option.name) && option.value !== undefined && option.isRepeatable !== true) {
      throw usageError(`${syntax.name}: option ${token.rawName} given more than once`, "give it once");
    }
    values.set(option.name, [...(values.get(option.name) ?? []), checkedValue(syntax, option, token)]);
  }
  // Without a command, -- only ends the options.
  const parsed =
    syntax.command === undefined
      ? new Arguments([], values, [...operands, ...words])
      : new Arguments(words, values, operands);
  if (!parsed.has("help")) requireOperands(syntax, parsed);
  return parsed;
}

function parseOption({ value, short }: Option): { type: "boolean" | "string"; short?: string } {
  return { type: value === undefined ? "boolean" : "string", ...(short === undefined ? {} : { short }) };
}

interface OptionToken {
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

function checkedValue(syntax: Syntax, option: Option, { rawName, value, inlineValue }: OptionToken): string {
  const subject = `${syntax.name}: option ${rawName}`;
  if (option.value === undefined) {
    if (value !== undefined) throw usageError(`${subject} takes no value`, `write ${rawName}`);
    return "";
  }
  const example = `--${option.name} ${option.value}`;
  if (value === undefined) throw usageError(`${subject} needs a value`, `write ${example}`);
  if (inlineValue !== true && value.startsWith("-")) {
    const hint = `write ${example}, or --${option.name}=${value} if that is the value`;
    throw usageError(`${subject} needs a value, but ${value} follows it`, hint);
  }
  if (option.choices !== undefined && !option.choices.includes(value)) {
    const expected = `one of ${option.choices.join(", ")}`;
    const meant = nearest(value, option.choices);
    const hint = meant === undefined ? `write ${example}` : `did you mean --${option.name} ${meant}?`;
    throw invalidValue(option.name, { value, expected, hint });
  }
  return value;
}

function requireOperands(syntax: Syntax, { operands, words }: Arguments): void {
  const { name, choices, command } = syntax;
  const { min, max, names } = operandsOf(syntax);
  const usage = `usage: ${usageOf(syntax)}`;
  const excess = operands[max];
  if (excess !== undefined) throw usageError(`${name}: unexpected argument ${JSON.stringify(excess)}`, usage);
  if (operands.length < min) throw usageError(`${name}: missing argument ${names[operands.length]}`, usage);
  if (command === "required" && words.length === 0) throw usageError(`${name}: missing argument CMD`, usage);
  const [first] = operands;
  if (first === undefined || choices === undefined || choices.includes(first)) return;
  const meant = nearest(first, choices);
  const hint = meant === undefined ? `use one of ${choices.join(", ")}` : `did you mean "${meant}"?`;
  throw usageError(`${name}: unknown ${names[0]?.toLowerCase()} ${JSON.stringify(first)}`, hint);
}

function unknownOption({ name, options }: Syntax, rawName: string): Error {
  const known = [...options, helpOption].map((option) => option.name);
  const meant = nearest(rawName.replace(/^-+/, ""), known);
  const hint = meant === undefined ? `run "sandpiper ${name} --help" to list the options` : `did you mean --${meant}?`;
  return usageError(`${name}: unknown option ${rawName}`, hint);
}
