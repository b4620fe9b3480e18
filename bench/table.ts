import { formatTarget, groupResults } from "./layout.ts";
import type { Report } from "./report.ts";

/** The report as text for a terminal. */
export function renderTable({ results, targets, problems }: Report): string {
  const lines: string[] = [];
  for (const group of groupResults(results)) {
    lines.push(
      "",
      group.name,
      ...columns(
        group.rows.map((row) => {
          const slowest = row.p99 === "" ? [] : [`p99 ${row.p99}`];
          return [row.subject, `p50 ${row.p50}`, `p95 ${row.p95}`, ...slowest, `n ${row.n}`, row.ratio];
        }),
      ),
    );
  }
  if (targets.length > 0) lines.push("", "targets", ...columns(targets.map(formatTarget)));
  if (problems.length > 0) lines.push("", "problems", ...problems.map((problem) => `  ${problem}`));
  return `${lines.join("\n")}\n`;
}

function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  return rows.map(
    (row) =>
      `  ${row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join("  ")}`,
  );
}
