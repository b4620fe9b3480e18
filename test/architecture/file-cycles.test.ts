import { expect, it } from "vitest";
import { readImports } from "./imports.ts";

it("no files import each other in a circle", () => {
  const graph = new Map<string, string[]>();
  for (const { from, to } of readImports()) graph.set(from, [...(graph.get(from) ?? []), to]);
  expect(findCycle(graph)).toEqual([]);
});

it("the search finds a circle", () => {
  const graph = new Map([
    ["a", ["b"]],
    ["b", ["c"]],
    ["c", ["b"]],
  ]);
  expect(findCycle(graph)).toEqual(["b", "c", "b"]);
});

/** The files of one circle, in the order of their imports; empty if there is none. */
function findCycle(graph: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): readonly string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return [];
    for (const next of graph.get(file) ?? []) {
      const cycle = visit(next, [...path, file]);
      if (cycle.length > 0) return cycle;
    }
    done.add(file);
    return [];
  };
  for (const file of graph.keys()) {
    const cycle = visit(file, []);
    if (cycle.length > 0) return cycle;
  }
  return [];
}
