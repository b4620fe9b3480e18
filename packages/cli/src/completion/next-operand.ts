import { type Option, operandsOf, type Syntax } from "../command/syntax.ts";

/** What the next word of a command line names, and the sandbox that the line names already. */
export interface NextOperand {
  readonly kind: "sandbox" | "process" | "checkpoint" | "request" | "node";
  readonly sandbox: string | undefined;
}

const kinds: Readonly<Record<string, NextOperand["kind"]>> = {
  SANDBOX: "sandbox",
  PROCESS: "process",
  CHECKPOINT: "checkpoint",
  REQUEST: "request",
};

/** Undefined where the next word is a part of a command, or something without a name. */
export function nextOperand(syntax: Syntax, words: readonly string[]): NextOperand | undefined {
  const given: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] as string;
    if (word === "--") return undefined;
    if (!word.startsWith("-")) given.push(word);
    else {
      const option = optionOf(syntax, word);
      if (option?.value === undefined) continue;
      index++;
      if (index < words.length) continue;
      return option.completes === "node" ? { kind: "node", sandbox: undefined } : undefined;
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

function optionOf({ options }: Syntax, word: string): Option | undefined {
  return options.find(({ name, short }) => word === `--${name}` || word === `-${short}`);
}
