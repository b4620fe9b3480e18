import type { StepResult } from "./run-steps.ts";

export function hasFailed(results: readonly StepResult[]): boolean {
  return results.some(({ status }) => status !== "passed");
}

/** A report in Markdown that can be pasted into an issue. */
export function reportOf(facts: Readonly<Record<string, string>>, results: readonly StepResult[]): string {
  const rows = results.map(({ name, status, ms, detail }) => `| ${name} | ${status} | ${ms} | ${cell(detail)} |`);
  const passed = results.filter(({ status }) => status === "passed").length;
  return [
    "## Sandpiper on this Firecracker",
    "",
    ...Object.entries(facts).map(([name, value]) => `- ${name}: ${value}`),
    `- result: ${passed} of ${results.length} steps passed`,
    "",
    "| step | status | ms | detail |",
    "|---|---|---|---|",
    ...rows,
  ].join("\n");
}

/** One line without characters that end a cell. */
function cell(text: string): string {
  return text
    .trim()
    .replaceAll(/\s*\n\s*/g, "<br>")
    .replaceAll("|", "\\|");
}
