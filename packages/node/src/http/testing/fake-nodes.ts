import type { NodeResource } from "@sandpiper/protocol";
import type { NodeDirectory } from "../../cluster/standalone-nodes.ts";

/** A directory of this node and one other. */
export class FakeNodes implements NodeDirectory {
  readonly drains: (number | undefined)[] = [];

  async list(): Promise<readonly NodeResource[]> {
    const at = new Date().toISOString();
    const node = { startedAt: at, seenAt: at, isAlive: true, isDraining: false, sandboxes: 0, version: "1.2.3" };
    return [true, false].map((isThisNode) => ({
      ...node,
      id: crypto.randomUUID(),
      url: "http://127.0.0.1:1",
      isThisNode,
    }));
  }

  drain: NodeDirectory["drain"] = async ({ deadlineMs }) => {
    this.drains.push(deadlineMs);
  };
}
