import type { StartedNode } from "./run-daemon.ts";

/** What somebody at a terminal needs to know first. */
export function banner(node: StartedNode, version: string): string {
  const { adopted, lost, setBack, removed } = node.reconciled;
  const found = [
    adopted.length > 0 && `took over ${sandboxes(adopted.length)}`,
    setBack.length > 0 && `${sandboxes(setBack.length)} will go on from the newest checkpoint`,
    lost.length > 0 && `${sandboxes(lost.length)} did not survive`,
    removed.length > 0 && `removed ${sandboxes(removed.length)} that belonged to nobody`,
  ].filter(Boolean);
  const lines = [
    `Sandpiper ${version} is ready: ${node.url}`,
    `  key    cat ${node.apiKeyFile}`,
    `  try    curl -H "Authorization: Bearer $(cat ${node.apiKeyFile})" ${node.url}/v1/sandboxes`,
    "  stop   Ctrl-C; sandboxes go on running, and the next start takes them over",
    ...(found.length > 0 ? [`  found  ${found.join(", ")}`] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function sandboxes(count: number): string {
  return count === 1 ? "1 sandbox" : `${count} sandboxes`;
}
