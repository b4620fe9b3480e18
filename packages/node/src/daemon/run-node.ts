import { startNode } from "../start/start-node.ts";
import { runDaemon } from "./run-daemon.ts";

/** Runs a node until a signal stops it. Returns the program's exit code. */
export function runNode(argv: readonly string[]): Promise<number> {
  return runDaemon({ start: startNode, argv });
}
