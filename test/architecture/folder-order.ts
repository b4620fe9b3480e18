import { describe, expect, it } from "vitest";
import { type Import, isTest, readImports } from "./imports.ts";

/** Stands in a table for the files of the directory itself. Without it, they may import and be imported freely. */
export const ROOT = ".";

/** The folders of a directory, innermost first. A folder may import folders before it in the order, never after it. */
export interface FolderOrder {
  readonly directory: string;
  readonly order: readonly string[];
}

export function describeFolderOrder({ directory, order }: FolderOrder): void {
  const imports = readImports().filter(({ from }) => !isTest(from) && !from.includes("/testing/"));

  describe(`the folders of ${directory}`, () => {
    it("are all in the table", () => {
      const folders = new Set(imports.map(({ from }) => folderOf(from, directory)));
      const named = [...folders].filter((folder) => folder !== undefined && folder !== ROOT);
      expect(named.toSorted()).toEqual(order.filter((folder) => folder !== ROOT).toSorted());
    });

    it("import only folders above them in the table", () => {
      expect(importsAgainst({ directory, order }, imports)).toEqual([]);
    });
  });
}

export function importsAgainst({ directory, order }: FolderOrder, imports: readonly Import[]): string[] {
  const rankOf = (path: string) => order.indexOf(folderOf(path, directory) ?? "");
  return imports
    .filter(({ from, to }) => rankOf(from) !== -1 && rankOf(to) > rankOf(from))
    .map(({ from, to }) => `${from} imports ${to}`);
}

/** Undefined for a path outside the directory. */
function folderOf(path: string, directory: string): string | undefined {
  if (!path.startsWith(`${directory}/`)) return undefined;
  const [folder = "", ...below] = path.slice(directory.length + 1).split("/");
  return below.length === 0 ? ROOT : folder;
}
