import { startNode } from "../start/start-node.ts";
import { runDaemon } from "./run-daemon.ts";

/** A node as a program: runs until it is stopped, and gives the program's exit code. */
export function runNode(argv: readonly string[]): Promise<number> {
  return runDaemon({ start: startNode, argv });
}
