import type { Option } from "../command/syntax.ts";
import type { Verb } from "../command/verb.ts";
import { COMPLETE_NAMES } from "./complete-names.ts";
import { completesNames, optionsOf, wordsToComplete } from "./completed-words.ts";

export function zshCompletion(verbs: readonly Verb[]): string {
  const names = verbs.map(({ name, summary }) => `    ${quote(`${name}:${summary}`)}`);
  const cases = verbs.map((verb) => `    ${verb.name})\n      _arguments \\\n${specsOf(verb).join(" \\\n")} ;;`);
  return `#compdef sandpiper

_sandpiper_names() {
  local -a names=(\${(f)"$($sandpiper ${COMPLETE_NAMES} "\${(@)line_words[1,line_current-1]}" 2> /dev/null)"})
  compadd -a names
}

_sandpiper() {
  local -a verbs=(
${names.join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  local sandpiper=$words[1]
  shift words
  (( CURRENT-- ))
  # _arguments changes these for its own use.
  local -a line_words=("\${(@)words}")
  local line_current=$CURRENT
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
  const rest = restOf(verb, words).map((spec) => `        ${quote(spec)}`);
  return [...options, `        ${quote("--help[show this help]")}`, ...rest];
}

function restOf(verb: Verb, words: readonly string[]): readonly string[] {
  if (verb.completesPaths === true) return ["*:path:_files"];
  const hasNames = completesNames(verb);
  if (verb.command !== undefined) return [...(hasNames ? ["1:name:_sandpiper_names"] : []), "*:: :_normal"];
  const first = words.length > 0 ? [`1:word:(${words.join(" ")})`] : [];
  return hasNames ? [...first, "*:name:_sandpiper_names"] : first;
}

function optionSpec({ name, value, isRepeatable, summary, choices, completes }: Option): string {
  const text = `${isRepeatable === true ? "*" : ""}--${name}[${summary.replace(/[[\]:\\]/g, "\\$&")}]`;
  if (value === undefined) return text;
  if (choices !== undefined) return `${text}:${name}:(${choices.join(" ")})`;
  if (completes === "node") return `${text}:${name}:_sandpiper_names`;
  return `${text}:${name}:${completes === undefined ? "" : completes === "directory" ? "_files -/" : "_files"}`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
