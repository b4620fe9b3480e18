import type { Result, Target } from "./report.ts";

/** Our own row comes first in every group; the others are relative to it. */
const OURS = "sandpiper-gvisor";

export type Group = ReturnType<typeof groupResults>[number];

export function groupResults(results: readonly Result[]) {
  const groups = Map.groupBy(results, (result) => result.name);
  return [...groups].map(([name, members]) => {
    const ours = members.find((one) => one.subject === OURS);
    const ordered = [...members].sort((left, right) => Number(right === ours) - Number(left === ours));
    return { name, rows: ordered.map((result) => rowOf(result, ours)) };
  });
}

function rowOf(result: Result, ours: Result | undefined) {
  return {
    subject: result.subject,
    p50: `${formatFigure(result.p50)} ${result.unit}`,
    p95: `${formatFigure(result.p95)} ${result.unit}`,
    p99: result.p99 === undefined ? "" : `${formatFigure(result.p99)} ${result.unit}`,
    n: String(result.n),
    /** Ratio to our own p50. */
    ratio: ours === undefined || ours.unit !== result.unit ? "" : `${formatFigure(result.p50 / ours.p50)}×`,
  };
}

/** The name, the figures and the verdict. */
export function formatTarget({ name, measured, target, holds }: Target): string[] {
  const figures = `${measured === null ? "not measured" : formatFigure(measured)} (target ${target})`;
  return [name, figures, holds ? "holds" : "DOES NOT HOLD"];
}

/** Three significant digits, without an exponent. */
export function formatFigure(value: number): string {
  if (value === 0) return "0";
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(decimals, 4));
}
