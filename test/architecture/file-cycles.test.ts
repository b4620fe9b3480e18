import { expect, it } from "vitest";
import { readImports } from "./imports.ts";

it("no import cycles exist between files", () => {
  const graph = new Map<string, string[]>();
  for (const { from, to } of readImports()) graph.set(from, [...(graph.get(from) ?? []), to]);
  expect(findCycles(graph)).toEqual([]);
});

it("the search finds every import cycle", () => {
  const graph = new Map([
    ["a", ["b", "d"]],
    ["b", ["c"]],
    ["c", ["b", "e"]],
    ["d", ["e"]],
    ["e", ["d"]],
  ]);
  expect(findCycles(graph)).toEqual(["b → c → b", "e → d → e"]);
});

/** A cycle for each import that closes one, in the order of its imports. */
function findCycles(graph: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): readonly string[] => {
    if (path.includes(file)) return [[...path.slice(path.indexOf(file)), file].join(" → ")];
    if (done.has(file)) return [];
    const cycles = (graph.get(file) ?? []).flatMap((next) => visit(next, [...path, file]));
    done.add(file);
    return cycles;
  };
  return [...graph.keys()].flatMap((file) => visit(file, []));
}
