import type { Option } from "../command/syntax.ts";
import type { Verb } from "../command/verb.ts";
import { COMPLETE_NAMES } from "./complete-names.ts";
import { completesNames, optionsOf, wordsToComplete } from "./completed-words.ts";

export function bashCompletion(verbs: readonly Verb[]): string {
  const cases = verbs.map((verb) => `    ${verb.name}) options="${optionNames(verb)}"; words="${wordsOf(verb)}" ;;`);
  const values = uniqueOptions(verbs).map((option) => `    --${option.name}) ${valueCompletion(option)}; return ;;`);
  return `_sandpiper_names() {
  "\${COMP_WORDS[0]}" ${COMPLETE_NAMES} "\${COMP_WORDS[@]:1:COMP_CWORD - 1}" 2> /dev/null
}

_sandpiper() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} options="" words="" names="" index
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "${verbs.map(({ name }) => name).join(" ")} --help --version" -- "$current")
    return
  fi
  for ((index = 2; index < COMP_CWORD; index++)); do
    if [ "\${COMP_WORDS[index]}" = -- ]; then
      mapfile -t COMPREPLY < <(compgen -c -o default -- "$current")
      return
    fi
  done
  case $previous in
${values.join("\n")}
  esac
  case \${COMP_WORDS[1]} in
${cases.join("\n")}
  esac
  case \${COMP_WORDS[1]} in
    ${pathVerbs(verbs)}) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
  esac
  case \${COMP_WORDS[1]}:$current in
    *:-*) ;;
    ${namedVerbs(verbs)})
      names=$(_sandpiper_names) ;;
  esac
  mapfile -t -O "\${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$options $words $names" -- "$current")
}
complete -o bashdefault -F _sandpiper sandpiper
`;
}

function optionNames(verb: Verb): string {
  return [...optionsOf(verb).map(({ name }) => `--${name}`), "--help"].join(" ");
}

function wordsOf(verb: Verb): string {
  return verb.command === undefined ? wordsToComplete(verb).join(" ") : "--";
}

function pathVerbs(verbs: readonly Verb[]): string {
  return verbs
    .filter(({ completesPaths }) => completesPaths === true)
    .map(({ name }) => name)
    .join("|");
}

function namedVerbs(verbs: readonly Verb[]): string {
  return verbs
    .filter(completesNames)
    .map(({ name }) => `${name}:*`)
    .join(" | ");
}

/** Options that take a value, each name once: a name means the same for every verb. */
function uniqueOptions(verbs: readonly Verb[]): Option[] {
  const withValue = verbs.flatMap(optionsOf).filter(({ value }) => value !== undefined);
  return [...new Map(withValue.map((option) => [option.name, option])).values()];
}

function valueCompletion({ choices, completes }: Option): string {
  if (choices !== undefined) return `mapfile -t COMPREPLY < <(compgen -W "${choices.join(" ")}" -- "$current")`;
  if (completes === undefined) return ":";
  if (completes === "node") return `mapfile -t COMPREPLY < <(compgen -W "$(_sandpiper_names)" -- "$current")`;
  return `mapfile -t COMPREPLY < <(compgen -${completes === "directory" ? "d" : "f"} -- "$current")`;
}
