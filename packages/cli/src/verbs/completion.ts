import type { Verb, VerbTable } from "../command/verb.ts";
import { print } from "../output/print.ts";

/** Takes the table, which names this verb too. */
export function createCompletionVerb(verbTable: VerbTable): Verb {
  return {
    name: "completion",
    summary: "print a shell completion script",
    operands: ["SHELL"],
    choices: ["bash", "zsh", "fish"],
    options: [],
    details: "SHELL is bash, zsh or fish. To load the script in every new shell, save it once, as in the examples.",
    examples: [
      "sandpiper completion bash > ~/.local/share/bash-completion/completions/sandpiper",
      `sandpiper completion zsh > "\${fpath[1]}/_sandpiper"`,
      "sandpiper completion fish > ~/.config/fish/completions/sandpiper.fish",
    ],
    async run({ operands: [shell] }) {
      const verbs = await Promise.all(Object.values(verbTable).map((load) => load()));
      await print(await completionOf(shell as string, verbs));
    },
  };
}

async function completionOf(shell: string, verbs: readonly Verb[]): Promise<string> {
  if (shell === "bash") return (await import("../completion/bash.ts")).bashCompletion(verbs);
  if (shell === "zsh") return (await import("../completion/zsh.ts")).zshCompletion(verbs);
  return (await import("../completion/fish.ts")).fishCompletion(verbs);
}
