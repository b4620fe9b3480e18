import type { Option } from "../command/option.ts";
import type { Verb } from "../command/verb.ts";

/** A verb's options, and those of its actions, each name once. */
export function optionsOf({ options, actions = [] }: Verb): readonly Option[] {
  const all = [...options, ...actions.flatMap((action) => action.options)];
  return [...new Map(all.map((option) => [option.name, option])).values()];
}

/** The words that a verb knows: its own, or the names of its actions. */
export function wordsToComplete({ name, words = [], actions = [] }: Verb): readonly string[] {
  return [...words, ...actions.map((action) => action.name.slice(name.length + 1))];
}

export function takesCommand({ words, operands, actions, passesOnArguments }: Verb): boolean {
  if (operands !== undefined) return operands.takesCommand === true;
  return words === undefined && actions === undefined && passesOnArguments !== true;
}
