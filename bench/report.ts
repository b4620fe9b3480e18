import type { Summary } from "./statistics.ts";

type Unit = "ms" | "MB" | "MB/s" | "count";

export interface Result extends Summary {
  readonly name: string;
  readonly subject: string;
  readonly unit: Unit;
}

/** A promise with its number. `measured` is null when it could not be measured, and then it does not hold. */
export interface Target {
  readonly name: string;
  readonly measured: number | null;
  readonly target: number;
  readonly holds: boolean;
}

/** What one benchmark found; problems are subjects or steps that could not be measured, and why. */
export interface Report {
  readonly results: readonly Result[];
  readonly targets: readonly Target[];
  readonly problems: readonly string[];
}

export function atMost(name: string, measured: number | null, target: number): Target {
  return { name: `${name}, at most`, measured, target, holds: measured !== null && measured <= target };
}

export function atLeast(name: string, measured: number | null, target: number): Target {
  return { name: `${name}, at least`, measured, target, holds: measured !== null && measured >= target };
}

/** The middle value of a subject, or null when that subject was not measured. */
export function p50Of(results: readonly Result[], subject: string, name?: string): number | null {
  return results.find((one) => one.subject === subject && (name === undefined || one.name === name))?.p50 ?? null;
}

/** Calculates with figures that may be missing: one missing figure makes the outcome missing. */
export function combine(
  figures: readonly (number | null)[],
  calculate: (...present: number[]) => number,
): number | null {
  return figures.some((figure) => figure === null) ? null : calculate(...(figures as number[]));
}
