import { Bed } from "./bed.ts";
import { configTarget } from "./config.ts";
import type { FuzzNode } from "./fuzz-node.ts";
import { mcpTarget } from "./mcp.ts";
import { restTarget } from "./rest.ts";
import { type FuzzOptions, type FuzzReport, type FuzzTarget, runFuzz } from "./run-fuzz.ts";
import { sessionTarget, socketTarget } from "./sockets.ts";

const targets = { rest: restTarget, socket: socketTarget, session: sessionTarget, mcp: mcpTarget } as const;

type Interface = keyof typeof targets | "config";
export const interfaces: readonly Interface[] = ["rest", "socket", "session", "mcp", "config"];

export function isInterface(name: string): name is Interface {
  return (interfaces as readonly string[]).includes(name);
}

/** Fuzzes one interface of a node; configuration needs none. */
export async function fuzzInterface(name: Interface, node: FuzzNode, options: FuzzOptions): Promise<FuzzReport> {
  if (name === "config") return await runFuzz(configTarget(), options);
  return await runFuzz((await targets[name](new Bed(node))) as FuzzTarget<unknown>, options);
}
