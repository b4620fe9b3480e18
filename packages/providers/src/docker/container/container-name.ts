import type { SandboxId } from "@sandpiper/protocol";

export function containerName(id: SandboxId): string {
  return `sandpiper-${id}`;
}
