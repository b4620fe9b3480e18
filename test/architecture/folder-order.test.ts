import { describe, expect, it } from "vitest";
import { describeFolderOrder, type FolderOrder, importsAgainst, ROOT } from "./folder-order.ts";

const tables: readonly FolderOrder[] = [
  {
    directory: "packages/protocol/src",
    order: ["errors", "address", "streams", "time", "agent", "api", "exec", "socket"],
  },
  {
    directory: "packages/core/src",
    order: ["store", "lease", "agent", "files", "process", "network", "sandbox", "lifetime", "pool", "manager"],
  },
  {
    directory: "packages/providers/src",
    order: [
      "host", // what any provider needs of the host
      "guest", // kernels and images for machines
      ...["mock", "local", "gvisor", "docker", "qemu", "firecracker", "vm-docker"],
      ROOT,
    ],
  },
  {
    directory: "packages/providers/src/docker",
    order: [
      "engine", // the engine's API
      "image",
      "storage", // volumes and mounts
      "container",
      "checkpoint",
      "channel", // to the agent
      "events",
      "workspace",
      ROOT, // the provider
    ],
  },
  {
    directory: "packages/sdk/src",
    order: ["http", "network", "socket", "ports", "rollback", "process", "files", "session"],
  },
  {
    directory: "packages/mcp/src",
    order: ["session", "tool", "output", "resources", "tools", ROOT],
  },
  {
    directory: "packages/cli/src",
    order: [
      "command", // verbs, arguments, help
      "options",
      "output",
      "target", // the node, sandbox or process that a verb names
      "completion",
      "guest", // a sandbox, on a node or embedded
      "transfer", // copies between host and guest
      "forward", // TCP ports of this machine
      "run",
      "shell",
      "mcp",
      "verbs",
      ROOT, // the program
    ],
  },
];

for (const table of tables) describeFolderOrder(table);

describe("the check of a folder order", () => {
  const directory = "packages/cli/src";
  const check = (from: string, to: string) =>
    importsAgainst({ directory, order: ["command", "verbs", ROOT] }, [
      { from: `${directory}/${from}`, to: `${directory}/${to}` },
    ]);

  it("finds an import of a folder further out", () => {
    expect(check("command/help-text.ts", "verbs/run.ts")).toEqual([
      "packages/cli/src/command/help-text.ts imports packages/cli/src/verbs/run.ts",
    ]);
    expect(check("verbs/run.ts", "program.ts")).toHaveLength(1);
  });

  it("allows an import of the same folder, and of one further in", () => {
    expect(check("verbs/run.ts", "verbs/exec.ts")).toEqual([]);
    expect(check("verbs/run.ts", "command/help-text.ts")).toEqual([]);
    expect(check("program.ts", "verbs/run.ts")).toEqual([]);
  });
});
