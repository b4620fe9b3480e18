import type { Benchmark, NamedBenchmark } from "./benchmark.ts";
import { discover } from "./discover.ts";

export async function discoverBenchmarks(): Promise<NamedBenchmark[]> {
  const modules = await discover<{ benchmark: Benchmark }>(new URL("benchmarks/", import.meta.url));
  return modules
    .map(({ name, module }) => ({ name, ...module.benchmark, run: module.benchmark.run.bind(module.benchmark) }))
    .sort((left, right) => left.order - right.order);
}

/** The requested benchmarks; for an unknown name, throws a TypeError that lists all. */
export function chooseBenchmarks(all: readonly NamedBenchmark[], only: readonly string[]): readonly NamedBenchmark[] {
  const unknown = only.filter((name) => !all.some((one) => one.name === name));
  if (unknown.length > 0) {
    throw new TypeError(`no benchmark ${unknown.join(", ")}; there are ${all.map((one) => one.name).join(", ")}`);
  }
  return only.length === 0 ? all : all.filter((one) => only.includes(one.name));
}
