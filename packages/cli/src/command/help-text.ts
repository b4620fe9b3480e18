import { helpOption } from "./arguments.ts";
import type { Option } from "./option.ts";
import type { Verb } from "./verb.ts";

export function programHelp(verbs: readonly Verb[]): string {
  const rows = verbs.map(({ name, summary }) => [name, summary] as const);
  return `Sandpiper runs code you do not trust in sandboxes.

Usage: sandpiper VERB [OPTIONS]

${table(rows)}

Examples:
  sandpiper run -- python3 -c 'print(6 * 7)'
  sandpiper shell --memory 1024
  sandpiper up
  id=$(sandpiper create --name build) && sandpiper exec build -- uname -a

sandpiper VERB --help says more about one verb.
`;
}

export function verbHelp(verb: Verb): string {
  const rows = [...verb.options, helpOption].map((option) => [optionForm(option), option.summary] as const);
  const details = verb.details === undefined ? "" : `\n${verb.details.trim()}\n`;
  const usage = ["sandpiper", verb.name, verb.usage].filter(Boolean).join(" ");
  const actions = verb.actions === undefined ? "" : `\n${actionTable(verb.actions)}\n`;
  return `Usage: ${usage}\n\n${sentence(verb.summary)}\n${actions}\nOptions:\n${table(rows)}\n${details}`;
}

function actionTable(actions: readonly Verb[]): string {
  return table(actions.map(({ name, usage, summary }) => [`${name} ${usage}`, summary] as const));
}

function optionForm({ name, short, value, isRepeatable }: Option): string {
  const names = short === undefined ? `--${name}` : `-${short}, --${name}`;
  if (value === undefined) return names;
  return `${names} ${value}${isRepeatable === true ? " …" : ""}`;
}

function sentence(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
}

function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join("\n");
}
