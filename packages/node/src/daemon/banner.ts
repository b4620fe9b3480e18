import { existsSync } from "node:fs";
import { engineText } from "../sandboxes/engine-status.ts";
import type { RunningNode } from "../start/start-node.ts";

/** The part of a node that the daemon uses. */
export type StartedNode = Pick<RunningNode, "url" | "apiKeyFile" | "reconciled" | "engines" | "stop">;

export interface BannerOptions {
  readonly version: string;
  readonly isInCluster: boolean;
}

/** The text that a terminal shows once the node listens. */
export function banner(node: StartedNode, { version, isInCluster }: BannerOptions): string {
  const { adopted, rebuilt, lost, setBack, removed } = node.reconciled;
  const found = [
    adopted.length > 0 && `adopted ${sandboxes(adopted.length)}`,
    rebuilt.length > 0 && `rebuilt ${sandboxes(rebuilt.length)} whose image has changed`,
    setBack.length > 0 && `${sandboxes(setBack.length)} will resume from the newest checkpoint`,
    lost.length > 0 && `lost ${sandboxes(lost.length)}`,
    removed.length > 0 && `removed ${sandboxes(removed.length)} without a record`,
  ].filter(Boolean);
  const hasKey = !isInCluster || existsSync(node.apiKeyFile);
  const lines = [
    `Sandpiper ${version} is ready: ${node.url}`,
    hasKey
      ? `  key    cat ${node.apiKeyFile}`
      : "  key    use any key of the cluster; the file api-key in the first node's home holds one",
    `  try    curl -H "Authorization: Bearer ${hasKey ? `$(cat ${node.apiKeyFile})` : "$SANDPIPER_API_KEY"}" ${node.url}/v1/sandboxes`,
    `  docs   ${node.url}/docs`,
    isInCluster
      ? "  stop   Ctrl-C; the node saves its sandboxes, and other nodes resume them on use"
      : "  stop   Ctrl-C; sandboxes keep running, and the next start adopts them",
    ...node.engines.map(({ provider, status }) => `  ${provider.padEnd(6)} ${engineText(status)}`),
    ...(found.length > 0 ? [`  found  ${found.join(", ")}`] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function sandboxes(count: number): string {
  return count === 1 ? "1 sandbox" : `${count} sandboxes`;
}
