import { styleText } from "node:util";
import type { Check, Diagnosis } from "@sandpiper/node";

const marks = { ok: ["green", "✓"], warning: ["yellow", "!"], failed: ["red", "✗"] } as const;

/** A diagnosis for people; colours appear only on a terminal. */
export function doctorReport({ works, checks }: Diagnosis): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.map((check) => checkLines(check, width));
  const verdict = works
    ? "Sandpiper works here. Try: sandpiper run -- python3 -c 'print(6 * 7)'"
    : "Sandpiper does not work here yet; see what is marked ✗.";
  return `${lines.join("\n")}\n\n${verdict}\n`;
}

function checkLines({ name, status, detail, hint }: Check, width: number): string {
  const [colour, mark] = marks[status];
  const line = `${styleText(colour, mark)} ${name.padEnd(width)}  ${detail}`;
  return hint === undefined ? line : `${line}\n  ${" ".repeat(width)}  ${styleText("dim", hint)}`;
}
