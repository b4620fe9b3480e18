import { type Summary, summarize } from "./statistics.ts";

type Unit = "ms" | "MB" | "MB/s" | "count";

export interface Result extends Summary {
  readonly name: string;
  readonly subject: string;
  readonly unit: Unit;
  /** Where a benchmark is about the slowest. */
  readonly p99?: number;
}

/** A promise with its number. If it was not measured, `measured` is null and it does not hold. */
export interface Target {
  readonly name: string;
  readonly measured: number | null;
  readonly target: number;
  readonly holds: boolean;
}

/** The outcome of one benchmark; problems are subjects or steps that failed, with the cause. */
export interface Report {
  readonly results: readonly Result[];
  readonly targets: readonly Target[];
  readonly problems: readonly string[];
}

export function resultOf(name: string, subject: string, samples: readonly number[], unit: Unit = "ms"): Result {
  return { name, subject, ...summarize(samples), unit };
}

/** The parts of several reports in order. */
export function joined<Part extends Partial<Report>>(parts: readonly Part[]): Report {
  return {
    results: parts.flatMap(({ results = [] }) => results),
    targets: parts.flatMap(({ targets = [] }) => targets),
    problems: parts.flatMap(({ problems = [] }) => problems),
  };
}

export function atMost(name: string, measured: number | null, target: number): Target {
  return { name: `${name}, at most`, measured, target, holds: measured !== null && measured <= target };
}

export function atLeast(name: string, measured: number | null, target: number): Target {
  return { name: `${name}, at least`, measured, target, holds: measured !== null && measured >= target };
}

/** The median of a subject, or null if it was not measured. */
export function p50Of(results: readonly Result[], subject: string, name?: string): number | null {
  return results.find((one) => one.subject === subject && (name === undefined || one.name === name))?.p50 ?? null;
}

export function ratio(one: number | null, other: number | null): number | null {
  return combine([one, other], (figure, divisor) => figure / divisor);
}

/** Calculates with optional figures: a missing one makes the result null. */
export function combine(
  figures: readonly (number | null)[],
  calculate: (...present: number[]) => number,
): number | null {
  return figures.some((figure) => figure === null) ? null : calculate(...(figures as number[]));
}
