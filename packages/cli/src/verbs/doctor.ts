import { styleText } from "node:util";
import type { Check, Diagnosis } from "@sandpiper/node";
import type { Verb } from "../command/verb.ts";
import { print, printJson } from "../output/print.ts";
import { checkNode } from "../target/check-node.ts";

export const doctorVerb: Verb = {
  name: "doctor",
  summary: "check this machine and suggest fixes",
  options: [
    { name: "fix", summary: "remove the leftovers of programs that died" },
    { name: "json", summary: "print a JSON object" },
  ],
  details: "Runs a command with each provider. Downloads nothing.",
  exitCodes: [
    ["0", "the default provider, gvisor, works"],
    ["1", "it does not work"],
  ],
  async run(arguments_) {
    const { diagnose } = await import("@sandpiper/node");
    const [{ works, checks }, node] = await Promise.all([
      diagnose({ removeLeftovers: arguments_.has("fix") }),
      checkNode(),
    ]);
    const diagnosis = { works, checks: [...checks, node] };
    if (arguments_.has("json")) await printJson(diagnosis);
    else await print(doctorReport(diagnosis));
    return diagnosis.works ? 0 : 1;
  },
};

const marks = { ok: ["green", "✓"], warning: ["yellow", "!"], failed: ["red", "✗"] } as const;

/** A diagnosis for people; colours appear only on a terminal. */
export function doctorReport({ works, checks }: Diagnosis): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.map((check) => checkLines(check, width));
  const verdict = works
    ? "Sandpiper works here. Try: sandpiper run -- python3 -c 'print(6 * 7)'"
    : "Sandpiper does not work here yet: fix the checks marked ✗.";
  return `${lines.join("\n")}\n\n${verdict}\n`;
}

function checkLines({ name, status, detail, hint }: Check, width: number): string {
  const [colour, mark] = marks[status];
  const line = `${styleText(colour, mark)} ${name.padEnd(width)}  ${detail}`;
  return hint === undefined ? line : `${line}\n  ${" ".repeat(width)}  ${styleText("dim", hint)}`;
}
