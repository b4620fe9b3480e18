import { expect, it } from "vitest";
import { LayerTree } from "./layer-tree.ts";

it("hides the paths of older layers, children first, and looks at each of them once per layer", () => {
  const tree = new LayerTree();
  for (const path of ["a", "a/b"]) tree.set(path, "directory", 0);
  for (const path of ["a/b/old", "a/older"]) tree.set(path, "file", 0);
  tree.set("a/new", "file", 1);
  const hide = () => {
    const seen: string[] = [];
    for (const path of tree.hidden("", 1)) {
      seen.push(path);
      tree.remove(path);
    }
    return seen;
  };
  expect(hide()).toEqual(["a/b/old", "a/b", "a/older"]);
  expect(hide()).toEqual([]);
  expect([tree.kindOf("a"), tree.kindOf("a/new"), tree.isHidden("a", 1)]).toEqual(["directory", "file", false]);
});

it("removes a directory with everything below it", () => {
  const tree = new LayerTree();
  tree.set("a", "directory", 0);
  tree.set("a/b", "file", 0);
  tree.remove("a");
  tree.set("a", "directory", 0);
  expect([tree.kindOf("a/b"), [...tree.hidden("", 1)]]).toEqual([undefined, ["a"]]);
});
