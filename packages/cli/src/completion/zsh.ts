import type { Option } from "../command/syntax.ts";
import type { Verb } from "../command/verb.ts";
import { NODE_IDS, optionsOf, wordsToComplete } from "./completed-words.ts";

export function zshCompletion(verbs: readonly Verb[]): string {
  const names = verbs.map(({ name, summary }) => `    ${quote(`${name}:${summary}`)}`);
  const cases = verbs.map((verb) => `    ${verb.name})\n      _arguments \\\n${specsOf(verb).join(" \\\n")} ;;`);
  return `#compdef sandpiper

_sandpiper_nodes() {
  compadd -- $(${NODE_IDS})
}

_sandpiper() {
  local -a verbs=(
${names.join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
${cases.join("\n")}
  esac
}

if [ "$funcstack[1]" = _sandpiper ]; then
  _sandpiper "$@"
else
  compdef _sandpiper sandpiper
fi
`;
}

function specsOf(verb: Verb): string[] {
  const options = optionsOf(verb).map((option) => `        ${quote(optionSpec(option))}`);
  const words = wordsToComplete(verb);
  const rest = restOf(verb, words);
  const help = `        ${quote("--help[show this help]")}`;
  return rest === false ? [...options, help] : [...options, help, `        ${quote(rest)}`];
}

function restOf(verb: Verb, words: readonly string[]): string | false {
  if (verb.completesPaths === true) return "*:path:_files";
  if (verb.command !== undefined) return "*:: :_normal";
  return words.length > 0 && `1:word:(${words.join(" ")})`;
}

function optionSpec({ name, value, isRepeatable, summary, choices, completes }: Option): string {
  const text = `${isRepeatable === true ? "*" : ""}--${name}[${summary.replace(/[[\]:\\]/g, "\\$&")}]`;
  if (value === undefined) return text;
  if (choices !== undefined) return `${text}:${name}:(${choices.join(" ")})`;
  if (completes === "node") return `${text}:${name}:_sandpiper_nodes`;
  return `${text}:${name}:${completes === undefined ? "" : completes === "directory" ? "_files -/" : "_files"}`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
