import type { Option } from "../command/syntax.ts";
import type { Verb } from "../command/verb.ts";
import { hasNames } from "./next-operand.ts";

/** A verb's options, and those of its actions, each name once. */
export function optionsOf({ options, actions = [] }: Verb): readonly Option[] {
  const all = [...options, ...actions.flatMap((action) => action.options)];
  return [...new Map(all.map((option) => [option.name, option])).values()];
}

/** The choices of a verb's operand, or the names of its actions. */
export function wordsToComplete({ name, choices = [], actions = [] }: Verb): readonly string[] {
  return [...choices, ...actions.map((action) => action.name.slice(name.length + 1))];
}

/** Whether an operand of a verb, or of one of its actions, names something on the node. */
export function completesNames(verb: Verb): boolean {
  return [verb, ...(verb.actions ?? [])].some(hasNames);
}
