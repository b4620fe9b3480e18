import { existsSync } from "node:fs";
import { engineText } from "../sandboxes/engine-status.ts";
import type { RunningNode } from "../start/start-node.ts";

/** What the daemon needs of a node. */
export type StartedNode = Pick<RunningNode, "url" | "apiKeyFile" | "reconciled" | "engines" | "stop">;

export interface BannerOptions {
  readonly version: string;
  /** Other nodes take what this one leaves, and its keys are theirs. */
  readonly isInCluster: boolean;
}

/** What somebody at a terminal needs to know first. */
export function banner(node: StartedNode, { version, isInCluster }: BannerOptions): string {
  const { adopted, rebuilt, lost, setBack, removed } = node.reconciled;
  const found = [
    adopted.length > 0 && `took over ${sandboxes(adopted.length)}`,
    rebuilt.length > 0 && `rebuilt ${sandboxes(rebuilt.length)} whose image has changed`,
    setBack.length > 0 && `${sandboxes(setBack.length)} will go on from the newest checkpoint`,
    lost.length > 0 && `${sandboxes(lost.length)} did not survive`,
    removed.length > 0 && `removed ${sandboxes(removed.length)} that belonged to nobody`,
  ].filter(Boolean);
  const hasKey = !isInCluster || existsSync(node.apiKeyFile);
  const lines = [
    `Sandpiper ${version} is ready: ${node.url}`,
    hasKey
      ? `  key    cat ${node.apiKeyFile}`
      : "  key    any key of the cluster; the first stands in api-key in the home of the node that began the cluster",
    `  try    curl -H "Authorization: Bearer ${hasKey ? `$(cat ${node.apiKeyFile})` : "$SANDPIPER_API_KEY"}" ${node.url}/v1/sandboxes`,
    isInCluster
      ? "  stop   Ctrl-C; sandboxes are saved, and go on at the node where they are used next"
      : "  stop   Ctrl-C; sandboxes go on running, and the next start takes them over",
    ...node.engines.map(({ provider, status }) => `  ${provider.padEnd(6)} ${engineText(status)}`),
    ...(found.length > 0 ? [`  found  ${found.join(", ")}`] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function sandboxes(count: number): string {
  return count === 1 ? "1 sandbox" : `${count} sandboxes`;
}
