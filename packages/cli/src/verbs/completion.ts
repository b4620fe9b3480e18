import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { print } from "../output/print.ts";
import { verbTable } from "../verb-table.ts";

export const completionVerb: Verb = {
  name: "completion",
  usage: "bash|zsh|fish",
  summary: "show what makes a shell complete sandpiper's command lines",
  details: `To use it in every new shell:
  bash  sandpiper completion bash > ~/.local/share/bash-completion/completions/sandpiper
  zsh   sandpiper completion zsh > "\${fpath[1]}/_sandpiper"
  fish  sandpiper completion fish > ~/.config/fish/completions/sandpiper.fish`,
  options: [],
  words: ["bash", "zsh", "fish"],
  async run({ words }) {
    const [shell] = words;
    if (shell === undefined || words.length > 1) {
      throw usageError("the completion of one shell can be shown at a time", "write bash, zsh or fish");
    }
    const verbs = await Promise.all(Object.values(verbTable).map((load) => load()));
    await print(await completionOf(shell, verbs));
    return 0;
  },
};

async function completionOf(shell: string, verbs: readonly Verb[]): Promise<string> {
  if (shell === "bash") return (await import("../completion/bash.ts")).bashCompletion(verbs);
  if (shell === "zsh") return (await import("../completion/zsh.ts")).zshCompletion(verbs);
  return (await import("../completion/fish.ts")).fishCompletion(verbs);
}
