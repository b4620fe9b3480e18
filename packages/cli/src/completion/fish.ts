import type { Option } from "../command/syntax.ts";
import type { Verb } from "../command/verb.ts";
import { COMPLETE_NAMES } from "./complete-names.ts";
import { completesNames, optionsOf, wordsToComplete } from "./completed-words.ts";

const NAMES = `function __sandpiper_names
  set -l words (commandline -opc)
  $words[1] ${COMPLETE_NAMES} $words[2..] 2> /dev/null
end
`;

export function fishCompletion(verbs: readonly Verb[]): string {
  const lines = verbs.flatMap((verb) => [
    `complete -c sandpiper -n __fish_use_subcommand -a ${verb.name} -d ${quote(verb.summary)}`,
    ...optionsOf(verb).map((option) => `complete -c sandpiper ${within(verb)} ${optionSpec(option)}`),
    ...(verb.completesPaths === true ? [`complete -c sandpiper ${within(verb)} -F`] : []),
    ...(completesNames(verb) ? [`complete -c sandpiper ${within(verb)} -a '(__sandpiper_names)'`] : []),
    ...wordsToComplete(verb).map((word) => `complete -c sandpiper ${within(verb)} -a ${word}`),
  ]);
  return `${NAMES}complete -c sandpiper -f\ncomplete -c sandpiper -l help -d 'show help'\n${lines.join("\n")}\n`;
}

function within(verb: Verb): string {
  return `-n '__fish_seen_subcommand_from ${verb.name}'`;
}

function optionSpec({ name, short, value, summary, choices, completes }: Option): string {
  const parts = [
    `-l ${name}`,
    short === undefined ? "" : `-s ${short}`,
    value === undefined ? "" : "-x",
    `-d ${quote(summary)}`,
  ];
  if (choices !== undefined) parts.push(`-a ${quote(choices.join(" "))}`);
  if (completes === "node") parts.push("-a '(__sandpiper_names)'");
  else if (completes !== undefined)
    parts.push(`-a '(__fish_complete_${completes === "directory" ? "directories" : "path"})'`);
  return parts.filter(Boolean).join(" ");
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
