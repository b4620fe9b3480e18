import { operandsOf, type Syntax } from "../command/syntax.ts";

/** What the next word of a command line names, and the sandbox that the line names already. */
export interface NextOperand {
  readonly kind: "sandbox" | "process" | "checkpoint";
  readonly sandbox: string | undefined;
}

const kinds: Readonly<Record<string, NextOperand["kind"]>> = {
  SANDBOX: "sandbox",
  PROCESS: "process",
  CHECKPOINT: "checkpoint",
};

/** Undefined where the next word is an option's value, a part of a command, or something without a name. */
export function nextOperand(syntax: Syntax, words: readonly string[]): NextOperand | undefined {
  const given: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] as string;
    if (word === "--") return undefined;
    if (!word.startsWith("-")) given.push(word);
    else if (takesValue(syntax, word)) {
      index++;
      if (index >= words.length) return undefined;
    }
  }
  const { names, max } = operandsOf(syntax);
  if (given.length >= max) return undefined;
  const kind = kinds[names[Math.min(given.length, names.length - 1)] ?? ""];
  return kind && { kind, sandbox: given[0] };
}

/** Whether any operand of a verb has names to complete. */
export function hasNames(syntax: Syntax): boolean {
  return operandsOf(syntax).names.some((name) => Object.hasOwn(kinds, name));
}

function takesValue({ options }: Syntax, word: string): boolean {
  const option = options.find(({ name, short }) => word === `--${name}` || word === `-${short}`);
  return option?.value !== undefined;
}
