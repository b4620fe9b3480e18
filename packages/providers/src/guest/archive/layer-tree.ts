import { posix } from "node:path";

export type NodeKind = "directory" | "file" | "symlink";

interface TreeNode {
  readonly kind: NodeKind;
  /** The newest layer that contains it. */
  readonly layer: number;
  /** The paths of a directory's content. */
  readonly children: Set<string>;
  /** The last layer that hid the directory's older content. */
  hiddenBy: number;
}

/** The paths that an unpacked image consists of. Each operation costs no more than the paths that it adds or removes. */
export class LayerTree {
  readonly #nodes = new Map<string, TreeNode>();

  constructor() {
    this.set("", "directory", 0);
  }

  kindOf(path: string): NodeKind | undefined {
    return this.#nodes.get(path)?.kind;
  }

  /** Adds or replaces a path, whose parent is a directory. A directory keeps its content. */
  set(path: string, kind: NodeKind, layer: number): void {
    const { children = new Set<string>(), hiddenBy = -1 } = this.#nodes.get(path) ?? {};
    this.#nodes.set(path, { kind, layer, children, hiddenBy });
    if (path !== "") this.#nodes.get(parentOf(path))?.children.add(path);
  }

  /** Removes a path and everything below it. */
  remove(path: string): void {
    for (const child of this.#nodes.get(path)?.children ?? []) this.remove(child);
    this.#nodes.delete(path);
    this.#nodes.get(parentOf(path))?.children.delete(path);
  }

  /** The paths below a directory that older layers contain and the given layer hides, children first. */
  *hidden(path: string, layer: number): Generator<string, void, undefined> {
    const node = this.#nodes.get(path);
    // A layer may repeat its whiteouts; what it hid once cannot come back in it.
    if (node?.kind !== "directory" || node.hiddenBy === layer) return;
    node.hiddenBy = layer;
    for (const child of [...node.children]) {
      yield* this.hidden(child, layer);
      if (this.isHidden(child, layer)) yield child;
    }
  }

  /** Whether a whiteout of the layer removes the path, after what it hides below the path is removed. */
  isHidden(path: string, layer: number): boolean {
    const node = this.#nodes.get(path);
    return node !== undefined && node.layer < layer && node.children.size === 0;
  }
}

export function parentOf(path: string): string {
  const parent = posix.dirname(path);
  return parent === "." ? "" : parent;
}
