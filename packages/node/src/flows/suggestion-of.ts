import { type NetworkSuggestion, ruleText, type SandboxId } from "@sandpiper/protocol";
import type { FlowLog } from "./flow-log.ts";
import { type NetworkBundles, RuleSuggestion } from "./suggest-rules.ts";

const PAGE = 1000;

export interface SuggestionOptions {
  readonly since?: Date | undefined;
  readonly bundles: NetworkBundles;
}

/** Suggests rules from a sandbox's whole log. */
export async function suggestionOf(
  log: Pick<FlowLog, "list">,
  id: SandboxId,
  { since, bundles }: SuggestionOptions,
): Promise<NetworkSuggestion> {
  const suggestion = new RuleSuggestion(bundles);
  let records = 0;
  for (let after = 0; ; ) {
    const { entries, dropped } = log.list(id, { since, after, limit: PAGE });
    for (const { record } of entries) suggestion.add(record);
    records += entries.length;
    const last = entries.at(-1);
    if (last === undefined) {
      const rules = [...suggestion.rules()];
      return { rules, text: textOf(rules), records, dropped };
    }
    after = last.cursor;
    // Other work of the node goes between two pages.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function textOf(rules: NetworkSuggestion["rules"]): string | null {
  if (rules.length === 0) return null;
  return `allow=${rules.map((rule) => ruleText(rule).slice("allow=".length)).join(",")}`;
}
