export interface Summary {
  readonly n: number;
  readonly p50: number;
  readonly p95: number;
}

export function summarize(samples: readonly number[]): Summary {
  return { n: samples.length, p50: percentile(samples, 50), p95: percentile(samples, 95) };
}

/** Nearest rank: always a measured value. */
export function percentile(samples: readonly number[], percent: number): number {
  const sorted = [...samples].sort((left, right) => left - right);
  const rank = Math.max(1, Math.ceil((percent / 100) * sorted.length));
  const value = sorted[rank - 1];
  if (value === undefined) throw new RangeError(`percentile ${percent} of no samples`);
  return value;
}

export function mean(samples: readonly number[]): number {
  if (samples.length === 0) throw new RangeError("mean of no samples");
  return samples.reduce((sum, sample) => sum + sample, 0) / samples.length;
}
