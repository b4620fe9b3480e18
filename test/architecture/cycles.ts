import type { Import } from "./imports.ts";

/** A cycle for each import that closes one, in the order of its imports. */
export function findCycles(imports: readonly Import[]): readonly string[] {
  const graph = Map.groupBy(imports, ({ from }) => from);
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): readonly string[] => {
    if (path.includes(file)) return [[...path.slice(path.indexOf(file)), file].join(" → ")];
    if (done.has(file)) return [];
    const cycles = (graph.get(file) ?? []).flatMap(({ to }) => visit(to, [...path, file]));
    done.add(file);
    return cycles;
  };
  return [...graph.keys()].flatMap((file) => visit(file, []));
}
