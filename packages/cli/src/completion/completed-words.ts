import type { Option } from "../command/syntax.ts";
import type { Verb } from "../command/verb.ts";

/** A shell command that prints the ids of the cluster's nodes. */
export const NODE_IDS = `sandpiper nodes --json 2>/dev/null | grep -o '"id": *"[^"]*"' | cut -d'"' -f4`;

/** A verb's options, and those of its actions, each name once. */
export function optionsOf({ options, actions = [] }: Verb): readonly Option[] {
  const all = [...options, ...actions.flatMap((action) => action.options)];
  return [...new Map(all.map((option) => [option.name, option])).values()];
}

/** The choices of a verb's operand, or the names of its actions. */
export function wordsToComplete({ name, choices = [], actions = [] }: Verb): readonly string[] {
  return [...choices, ...actions.map((action) => action.name.slice(name.length + 1))];
}
