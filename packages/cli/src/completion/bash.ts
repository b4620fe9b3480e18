import type { Option } from "../option.ts";
import type { Verb } from "../verb.ts";

export function bashCompletion(verbs: readonly Verb[]): string {
  const cases = verbs.map((verb) => `    ${verb.name}) options="${optionNames(verb)}"; words="${wordsOf(verb)}" ;;`);
  const values = uniqueOptions(verbs).map((option) => `    --${option.name}) ${valueCompletion(option)}; return ;;`);
  return `_sandpiper() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} options="" words="" index
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
  mapfile -t COMPREPLY < <(compgen -W "$options $words" -- "$current")
}
complete -o bashdefault -F _sandpiper sandpiper
`;
}

function optionNames({ options }: Verb): string {
  return [...options.map(({ name }) => `--${name}`), "--help"].join(" ");
}

function wordsOf({ words }: Verb): string {
  return words === undefined ? "--" : words.join(" ");
}

/** Options that take a value, each name once: they mean the same for every verb. */
function uniqueOptions(verbs: readonly Verb[]): Option[] {
  const withValue = verbs.flatMap(({ options }) => options).filter(({ value }) => value !== undefined);
  return [...new Map(withValue.map((option) => [option.name, option])).values()];
}

function valueCompletion({ choices, completes }: Option): string {
  if (choices !== undefined) return `mapfile -t COMPREPLY < <(compgen -W "${choices.join(" ")}" -- "$current")`;
  if (completes === undefined) return ":";
  return `mapfile -t COMPREPLY < <(compgen -${completes === "directory" ? "d" : "f"} -- "$current")`;
}
