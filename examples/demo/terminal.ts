import { styleText } from "node:util";

const LABEL_WIDTH = 12;
const TEXT_WIDTH = 68;

/** styleText uses colours only on a terminal and without NO_COLOR. */
export function printTitle(text: string): void {
  console.log(`\n${styleText("bold", text)}`);
}

export function printStep(label: string, text: string, durationMs: number): void {
  const mark = styleText("green", "✓");
  const time = styleText("dim", formatMs(durationMs).padStart(9));
  console.log(`  ${mark} ${label.padEnd(LABEL_WIDTH)}${text.padEnd(TEXT_WIDTH)}${time}`);
}

export function formatMs(durationMs: number): string {
  return durationMs < 10 ? `${durationMs.toFixed(1)} ms` : `${Math.round(durationMs)} ms`;
}
